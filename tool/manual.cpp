// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The manual page and the shell completion, from the tables of verbs and options. Hidden verbs: the build calls
// them to make what is installed.
#include <fmt/format.h>

#include "base/options.hpp"
#include "terminal.hpp"
#include "verbs.hpp"

namespace farheap::tool {
namespace {

// Text for troff: no line may begin with a control character, minus signs stay minus signs.
std::string troff(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && result.empty()) {
      result += std::string("\\&") + c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string joined(std::span<const std::string_view> words) {
  std::string text;
  for (const auto word : words) text += (text.empty() ? "" : " ") + std::string(word);
  return text;
}

std::string listed_keys() {
  std::string text;
  for (const auto& row : base::option_table()) {
    if (!row.hidden) text += (text.empty() ? "" : " ") + std::string(row.key) + "=";
  }
  return text;
}

void print_verbs_for_manual() {
  print_out(".SH VERBS\n");
  for (const auto& verb : verbs()) {
    print_out(".TP\n.B farheap {}\n{}.\n.RS\n.nf\n", troff(verb.usage), troff(verb.summary));
    for (const auto example : verb.examples) print_out("{}\n", troff(example));
    print_out(".fi\n.RE\n");
  }
}

void print_options_for_manual() {
  print_out(
      ".SH OPTIONS\nEvery option can be set on the command line (\\fB\\-\\-set\\fR \\fIkey\\fR=\\fIvalue\\fR) or in "
      "the "
      "environment; the command line wins.\n");
  for (const auto& row : base::option_table()) {
    if (row.hidden) continue;
    const auto initial = row.default_text.empty() ? std::string("empty") : troff(row.default_text);
    print_out(".TP\n.BR {} \" ({}), \" \"{}\"\n{}. Default: {}.\n", troff(row.key), troff(row.variable()),
              troff(row.form), troff(row.help), initial);
  }
}

}  // namespace

int manual() {
  print_out(".\\\" SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n");
  print_out(".TH FARHEAP 1 \"\" \"farheap {}\" \"User commands\"\n", FARHEAP_VERSION);
  print_out(".SH NAME\nfarheap \\- run programs whose heap is larger than memory\n");
  print_out(".SH SYNOPSIS\n.B farheap\n.I verb\n[options] [\\-\\- program args]\n");
  print_verbs_for_manual();
  print_options_for_manual();
  print_out(
      ".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage, 3 what was looked for was found (\\fBfarheap heap check "
      "--pointers\\fR). \\fBfarheap run\\fR returns the program's own status, 128 and "
      "the signal's number when it was killed, 127 when the program was not found and 126 when it cannot be "
      "executed. A program ends with 71 when the runtime cannot start in it, and with 74 when it cannot go on, as when "
      "its store fails.\n");
  return kDone;
}

int completion() {
  // Bash splits words at '=': "policy=cl" arrives as "policy", "=", "cl".
  print_out(R"(# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# bash completion of farheap, generated from its tables
_farheap() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" key= choices= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then
      type _command_offset >/dev/null 2>&1 && _command_offset $((i + 1))
      return
    fi
  done
  if [[ $word == = ]]; then key=$before word=
  elif [[ $before == = ]]; then key=${{COMP_WORDS[COMP_CWORD-2]}}
  else key=$before; fi
  case "${{key#--}}" in
)");
  for (const auto& row : base::option_table()) {
    if (!row.hidden && !row.choices.empty()) print_out("    {}) choices='{}';;\n", row.key, joined(row.choices));
  }
  print_out("    hints) choices='kernel kernel:mlock kernel:madvise';;\n");
  print_out("    set) choices='{}'; compopt -o nospace 2>/dev/null;;\n", listed_keys());
  print_out(R"(    *) case "${{COMP_WORDS[1]}}" in
         run) choices='--memory --store --set --plan --hints --hints-share --trace --trace-interval --quiet --stats --plain --';;
         heap) choices='ls show stats diff export check copy snapshot compact rm rollback --json --object --data --repair --newest --own-bytes';;
         top) choices='--once --interval --json';;
         report) choices='--html --pprof --json --folded --weight --speedscope --compare --tolerance'; compopt -o default 2>/dev/null;;
         core) compopt -o default 2>/dev/null; choices='--pid --out --set --json';;
         doctor | options) choices='--set --json';;
         store) choices='bench kinds --json';;
         *) choices='run top report doctor core heap options store --help --version';;
       esac;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}}
complete -F _farheap farheap
)");
  return kDone;
}

}  // namespace farheap::tool

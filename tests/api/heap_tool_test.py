#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example of a kept heap, and the verbs of the tool on what it left.

  heap_tool_test.py TOOL WORDS
"""

import contextlib
import json
import os
import pty
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

TOOL, WORDS = sys.argv[1:3]


class HeapToolTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "words")
        self.uri = f"file:{self.file}"

    def run_words(self, text):
        done = subprocess.run([WORDS, self.uri], input=text, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def tool(self, *words, status=0):
        done = subprocess.run([TOOL, "heap", *words], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    def test_words_are_counted_from_run_to_run(self):
        self.assertEqual(self.run_words("a b a"), "2 a\n1 b\n")
        self.assertEqual(self.run_words("b b c"), "3 b\n2 a\n1 c\n")

    def test_ls_and_show_tell_what_is_there(self):
        self.run_words("a b a")
        self.assertIn("counts", self.tool("ls", self.uri))
        listing = json.loads(self.tool("ls", self.uri, "--json"))
        self.assertEqual([one["name"] for one in listing["objects"]], ["counts"])
        self.assertEqual(listing["objects"][0]["kind"], "named")
        self.assertIn("std::map<", listing["objects"][0]["type"])
        self.assertEqual([one["name"] for one in listing["versions"]], [""])
        self.assertIn("std::map<", self.tool("show", self.uri, "counts"))
        self.assertIn("farheap heap ls", self.tool("show", self.uri, "nothing", status=1))

    def test_show_without_a_name_tells_of_the_heap(self):
        self.run_words("a")
        self.tool("snapshot", self.uri, "monday")
        self.run_words("b")
        facts = json.loads(self.tool("show", f"{self.uri}@monday", "--json"))
        self.assertEqual((facts["object_count"], facts["version"]["name"]), (1, "monday"))
        self.assertGreaterEqual(facts["heap_format"], 1)
        self.assertRegex(facts["id"], "^[0-9a-f]{32}$")
        self.assertEqual(facts["version"]["bytes"], facts["version"]["pages"] * 4096)
        self.assertEqual([one["name"] for one in facts["versions"]], ["monday", ""])
        self.assertIn("1.0 TiB", self.tool("show", self.uri))
        address = json.loads(self.tool("show", self.uri, "counts", "--json"))["objects"][0]["address"]
        self.assertIn("std::map<", self.tool("show", self.uri, hex(address)))

    def test_stats_tell_what_snapshots_take(self):
        self.run_words("a")
        self.tool("snapshot", self.uri, "monday")
        self.run_words(" ".join(f"word{i}" for i in range(2000)))
        usage = json.loads(self.tool("stats", self.uri, "--json"))
        self.assertEqual([one["name"] for one in usage["snapshots"]], ["monday"])
        self.assertGreater(usage["snapshots"][0]["own_bytes"], 0)
        self.assertGreater(usage["allocated_bytes"], 2000 * 48)
        self.assertGreaterEqual(usage["all_bytes"], usage["page_bytes"])
        self.assertIn("ALONE", self.tool("stats", self.uri))

    def test_nothing_is_mapped_to_look(self):
        self.run_words("a")
        # Less than a heap's addresses, more than a program needs.
        limit = ["sh", "-c", 'ulimit -v 1000000; "$@"', "sh", TOOL, "heap"]
        for words in (["ls", self.uri], ["show", self.uri, "counts"], ["diff", self.uri, self.uri], ["stats", self.uri],
                      ["export", self.uri, "-"]):
            done = subprocess.run([*limit, *words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)

    def test_diff_tells_which_objects_and_how_many_pages(self):
        self.run_words("a")
        self.tool("snapshot", self.uri, "monday")
        self.assertIn("no difference", self.tool("diff", f"{self.uri}@monday", self.uri))
        self.run_words(" ".join(f"word{i}" for i in range(2000)))
        self.assertIn("counts", self.tool("diff", f"{self.uri}@monday", self.uri))
        found = json.loads(self.tool("diff", f"{self.uri}@monday", self.uri, "--json"))
        self.assertTrue(found["differ"])
        self.assertEqual([(one["what"], one["a"]["name"], one["differs"]) for one in found["objects"]],
                         [("changed", "counts", ["bytes"])])
        pages = found["pages"]
        self.assertEqual(pages["changed"] + pages["only_in_a"] + pages["only_in_b"],
                         pages["of_objects"] + pages["of_others"] + pages["of_books"])
        self.assertGreater(pages["of_others"], 10)  # the words
        other = f"{self.uri}2"
        subprocess.run([WORDS, other], input="a", capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("different heaps", self.tool("diff", self.uri, other, status=2))

    def test_export_writes_facts_and_bytes(self):
        self.run_words("a b a")
        out = os.path.join(self.folder.name, "out")
        self.tool("export", self.uri, out)
        with open(out, encoding="utf-8") as file:
            head, *objects = [json.loads(line) for line in file]
        self.assertEqual((head["format"], head["kind"], head["objects"]), (1, "farheap heap", 1))
        self.assertEqual([one["name"] for one in objects], ["counts"])
        self.tool("export", self.uri, out, "--object", "counts")
        with open(out, "rb") as file:
            self.assertEqual(len(file.read()), objects[0]["bytes"])
        # A file that was there stays when the export fails, and nothing else is left.
        self.assertIn("farheap heap ls", self.tool("export", self.uri, out, "--object", "nothing", status=1))
        self.assertEqual(os.path.getsize(out), objects[0]["bytes"])
        self.assertNotIn("out.part", os.listdir(self.folder.name))
        self.assertIn("no/such", self.tool("export", self.uri, "/no/such/file", status=1))

    def test_run_refuses_a_kept_heap_with_the_reason(self):
        self.run_words("a")
        self.tool("snapshot", self.uri, "monday")
        before = sorted(os.listdir(self.folder.name))
        for store in (self.uri, f"{self.uri}@monday"):
            done = subprocess.run([TOOL, "run", "--store", store, "--", "echo", "ran"], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            for text in ("a kept heap", "was not written for it", "--store file:DIR"):
                self.assertIn(text, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder.name)), before)
        self.assertEqual(self.run_words("a"), "2 a\n")

    def test_snapshots_are_made_read_returned_to_and_removed(self):
        self.run_words("a")
        self.tool("snapshot", self.uri, "one")
        self.run_words("b b")
        names = [one["name"] for one in json.loads(self.tool("ls", self.uri, "--json"))["versions"]]
        self.assertEqual(names, ["one", ""])
        self.tool("ls", f"{self.uri}@one")
        self.tool("check", f"{self.uri}@one")
        self.tool("rollback", self.uri)
        self.tool("compact", self.uri)
        self.assertEqual(self.run_words(""), "1 a\n")
        self.tool("rm", f"{self.uri}@one")
        self.assertIn("it has none", self.tool("ls", f"{self.uri}@one", status=1))

    def test_a_copy_has_all_versions_and_an_id_of_its_own(self):
        self.run_words("a")
        self.tool("snapshot", self.uri, "one")
        self.run_words("b b")
        other = f"lmdb:{self.file}.copy"
        said = json.loads(self.tool("copy", self.uri, other, "--json"))
        self.assertEqual((said["heap"], said["from"]), (other, self.uri))
        was = json.loads(self.tool("ls", self.uri, "--json"))
        self.assertEqual(said["versions"], was["versions"])
        self.assertNotEqual(said["id"], was["id"])
        self.assertEqual(self.tool("copy", other, f"file:{self.file}.new", "--newest"), "")
        names = [one["name"] for one in json.loads(self.tool("ls", f"file:{self.file}.new", "--json"))["versions"]]
        self.assertEqual(names, [""])
        self.tool("copy", f"{other}@one", f"file:{self.file}.old", "--own-bytes")
        self.uri = f"file:{self.file}.old"
        self.assertEqual(self.run_words(""), "1 a\n")
        self.assertIn("there is a heap already", self.tool("copy", other, self.uri, status=1))

    def test_a_heap_goes_back_to_the_snapshot_that_is_named(self):
        for text, name in (("a", "one"), ("b", "two"), ("c", "three")):
            self.run_words(text)
            self.tool("snapshot", self.uri, name)
        self.assertIn("no snapshot 'four'", self.tool("rollback", f"{self.uri}@four", status=1))
        said = json.loads(self.tool("rollback", f"{self.uri}@two", "--json"))
        self.assertEqual([one["name"] for one in said["versions"]], ["one", "two", ""])
        self.assertEqual(json.loads(self.tool("compact", self.uri, "--json"))["heap"], self.uri)
        self.assertEqual(sorted(self.run_words("").split()), ["1", "1", "a", "b"])

    def said(self, *words):
        """What the tool said beside its data."""
        done = subprocess.run([TOOL, "heap", *words], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        return done.stderr

    def test_rollback_and_rm_say_what_went(self):
        for text, name in (("a", "one"), ("b", "two"), ("c", "three")):
            self.run_words(text)
            self.tool("snapshot", self.uri, name)
        went = self.said("rollback", f"{self.uri}@one")
        self.assertIn("went back to the snapshot 'one' (commit ", went)
        for gone in ("gone: the snapshot 'two'", "gone: the snapshot 'three'", "gone: the newest version"):
            self.assertIn(gone, went)
        went = self.said("rm", f"{self.uri}@one")
        self.assertIn("removed the snapshot 'one' (commit ", went)
        self.assertIn("the heap and its other versions stay", went)
        self.run_words("a")
        self.tool("snapshot", self.uri, "two")
        self.assertEqual([one["name"] for one in json.loads(self.tool("rollback", self.uri, "--json"))["gone"]], [""])
        self.assertIn(f"removed {self.uri}", self.said("rm", self.uri))

    def test_rollback_asks_on_a_terminal_and_shows_what_would_go(self):
        # Without a snapshot's name it went back without a word.
        self.run_words("a")
        self.tool("snapshot", self.uri, "one")
        self.run_words("b")
        for answer, status, words in ((b"n\n", 1, "1 b\n1 a\n"), (b"y\n", 0, "1 a\n")):
            ours, theirs = pty.openpty()
            os.write(ours, answer)
            done = subprocess.run([TOOL, "heap", "rollback", self.uri], stdin=theirs, stderr=theirs, check=False,
                                  timeout=60)
            os.close(theirs)
            said = b""
            with contextlib.suppress(OSError):  # the end: all others have closed it
                while piece := os.read(ours, 4096):
                    said += piece
            os.close(ours)
            self.assertEqual(done.returncode, status, said)
            self.assertIn(b"would go: the newest version (commit ", said)
            self.assertIn(b"back to the snapshot 'one' (commit ", said)
            self.assertIn(b"? [y/N] ", said)
            self.assertIn(b"nothing is changed" if status else b"gone: the newest version", said)
            names = [one["name"] for one in json.loads(self.tool("ls", self.uri, "--json"))["versions"]]
            self.assertEqual(names, ["one", ""])
            self.assertEqual(self.run_words(""), words)
        self.tool("rollback", self.uri, "--yes")

    def test_long_names_leave_a_table_a_table(self):
        # They made every line of it as long. store.kept_stores has one of 5,000 characters.
        self.run_words("a")
        name = "first" + "x" * 80 + "last"
        self.tool("snapshot", self.uri, name)
        for words in (["ls", self.uri], ["stats", self.uri]):
            table = self.tool(*words)
            self.assertLess(max(map(len, table.splitlines())), 140)
            self.assertNotIn(name, table)
            self.assertRegex(table, r"(?m)^firstx+\.\.\.x+last ")
            self.assertIn(name, self.tool(*words, "--long"))
        self.assertIn(name, self.tool("ls", self.uri, "--json"))

    def test_pointers_out_of_a_heap_have_a_status_of_their_own(self):
        # It said that there were some, and 0.
        self.run_words("a")
        self.assertIn("sound", self.tool("check", "--pointers", self.uri))
        word = bytes([0x90, 0x81, 0x82, 0x83, 0x55, 0x55])
        subprocess.run([WORDS, self.uri], input=word, capture_output=True, timeout=60, check=True)
        for more in ([], ["--data"], ["--json"]):
            done = subprocess.run([TOOL, "heap", "check", "--pointers", self.uri, *more], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            if "--json" in more:
                self.assertEqual(json.loads(done.stdout)["foreign_words"], 1)
            else:
                self.assertIn("1 words in it look like pointers", done.stdout)
                self.assertIn("farheap::string", done.stderr)
        self.assertEqual(self.tool("check", self.uri), f"{self.uri}: sound\n")

    def test_an_export_to_a_full_disk_says_what_to_do(self):
        self.run_words("a b a")
        told = self.tool("export", self.uri, "/dev/full", status=1)
        self.assertIn("No space left on device; make room, and export again; `df /dev` shows what there is", told)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([TOOL, "heap", "ls", self.uri], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("make room; `df` shows what there is", done.stderr)

    def test_messages_are_in_the_words_of_the_tool(self):
        for words in (["ls", self.uri], ["snapshot", self.uri, "x"], ["rm", self.uri], ["check", self.uri],
                      ["copy", self.uri, f"{self.uri}2"], ["compact", self.uri], ["rollback", self.uri]):
            told = self.tool(*words, status=1)
            self.assertIn("does not exist", told)
            self.assertNotRegex(told, r"\w\(\)|::")
        self.run_words("a")
        self.assertIn("write", self.tool("copy", self.uri, f"{self.file}@x", status=2))
        told = self.tool("copy", self.uri, f"{self.uri}@x", status=2)
        self.assertIn("%40", told)

    def test_a_path_of_any_name_has_a_uri(self):
        self.file = os.path.join(self.folder.name, "what?now", "me@home")
        os.mkdir(os.path.dirname(self.file))
        self.uri = "file:" + self.file.replace("?", "%3F").replace("@", "%40")
        self.run_words("a b a")
        self.assertTrue(os.path.exists(self.file))
        self.assertEqual(json.loads(self.tool("ls", self.uri, "--json"))["heap"], self.uri)
        self.tool("snapshot", self.uri, "one")
        self.tool("ls", f"{self.uri}@one")
        self.tool("rm", self.uri)
        self.assertEqual(os.listdir(os.path.dirname(self.file)), [])

    def test_what_is_no_heap_stays_as_it_is(self):
        for text in ("", "some words\n"):
            with open(self.file, "w", encoding="utf-8") as file:
                file.write(text)
            for verb in ("ls", "rm", "check", "stats"):
                done = subprocess.run([TOOL, "heap", verb, self.uri], capture_output=True, text=True, timeout=60,
                                      check=False)
                self.assertNotEqual(done.returncode, 0, verb)
            self.assertEqual(os.listdir(self.folder.name), ["words"])
            self.assertEqual(os.path.getsize(self.file), len(text))

    def test_a_link_in_the_place_of_a_file_to_write_is_not_followed(self):
        self.run_words("a")
        victim = os.path.join(self.folder.name, "victim")
        with open(victim, "w", encoding="utf-8") as file:
            file.write("secret")
        out = os.path.join(self.folder.name, "out")
        os.symlink(victim, f"{out}.part")
        self.tool("export", self.uri, out)
        os.symlink(victim, f"{self.file}2.lock")
        self.tool("copy", self.uri, f"{self.uri}2", status=1)
        with open(victim, encoding="utf-8") as file:
            self.assertEqual(file.read(), "secret")

    def test_an_export_of_root_replaced_what_a_strangers_link_led_to(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a link of somebody else's")
        self.run_words("a")
        os.chmod(self.folder.name, 0o1777)
        victim, link, own = (os.path.join(self.folder.name, name) for name in ("victim", "link", "own"))
        for path in (victim, own):
            with open(path, "w", encoding="utf-8") as file:
                file.write("precious")
        os.symlink(victim, link)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        os.chown(own, 65534, 65534)
        for path in (link, own):
            self.tool("export", self.uri, path, status=1)
        for path in (victim, own):
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), "precious")

    def lock_text(self):
        try:
            with open(f"{self.file}.lock", encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def test_a_writer_is_waited_for_as_long_as_is_said(self):
        # Its lock is there before the heap is: so the heap is made first.
        subprocess.run([WORDS, self.uri], input="", stdout=subprocess.DEVNULL, text=True, check=True)
        with subprocess.Popen([WORDS, self.uri], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as words:
            while str(words.pid) not in self.lock_text():
                time.sleep(0.01)
            self.assertIn(str(words.pid), self.tool("compact", self.uri, "--wait", "0", status=1))
            words.stdin.close()
            self.tool("compact", self.uri, "--wait", "60")

    def damage_a_book(self):
        """Finds the block of the free space by what heap check says of its damage, and leaves it damaged."""
        with open(self.file, "r+b") as file:
            whole = file.read()
            for at in range(2 * 4096 + 8, len(whole), 4096):
                if not any(whole[at - 8:at + 4088]):
                    continue
                file.seek(at)
                file.write(bytes([whole[at] ^ 0xff]))
                file.flush()
                if b"cannot read the map of free space" in subprocess.run(
                        [TOOL, "heap", "check", self.uri], capture_output=True, timeout=60, check=False).stderr:
                    return
                file.seek(at)
                file.write(bytes([whole[at]]))
        self.fail("no damage was told")

    def test_a_damaged_heap_is_repaired(self):
        self.run_words("a")
        self.tool("snapshot", self.uri, "one")
        self.run_words("b b")
        before = json.loads(self.tool("ls", self.uri, "--json"))
        self.assertEqual(self.tool("check", self.uri, "--repair"), f"{self.uri}: sound\n")
        self.damage_a_book()
        said = json.loads(self.tool("check", self.uri, "--repair", "--json"))
        self.assertTrue(said["repaired"])
        self.assertEqual(said["old_files"], [f"{self.file}.damaged", f"{self.file}.damaged.versions"])
        self.tool("check", self.uri, "--data")
        after = json.loads(self.tool("ls", self.uri, "--json"))
        self.assertEqual((after["id"], after["versions"]), (before["id"], before["versions"]))
        self.assertEqual((said["versions"], said["lost"]), (before["versions"], []))
        self.assertIn("a", self.run_words(""))

    def test_progress_is_shown_on_a_terminal_only(self):
        self.run_words(" ".join(str(i) for i in range(2000)))
        slow = f"slow+file:{self.file}.copy?delay_us=200000"
        ours, theirs = pty.openpty()
        with subprocess.Popen([TOOL, "heap", "copy", self.uri, slow], stderr=theirs, stdout=subprocess.PIPE) as copy:
            os.close(theirs)
            seen = b""
            try:
                while chunk := os.read(ours, 4096):
                    seen += chunk
            except OSError:  # the other end is closed
                pass
            self.assertEqual((copy.wait(timeout=60), copy.stdout.read()), (0, b""))
        os.close(ours)
        self.assertRegex(seen, rb"copying: [0-9.]+ \w+ of [0-9.]+ \w+, \d+ %")
        self.assertTrue(seen.endswith(b"\r\x1b[K"), seen)
        done = subprocess.run([TOOL, "heap", "copy", self.uri, f"slow+file:{self.file}.other?delay_us=200000"],
                              capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"", b""))

    def test_export_replaces_no_device_and_no_file_of_the_heap(self):
        self.run_words("a b a")
        pipe = os.path.join(self.folder.name, "pipe")
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
            self.tool("export", self.uri, pipe)
            self.assertIn("counts", reader.communicate(timeout=60)[0])
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))
        for own in (self.file, self.file + ".versions"):
            self.assertIn("file of the heap itself", self.tool("export", self.uri, own, status=2))
        link = os.path.join(self.folder.name, "link")
        target = os.path.join(self.folder.name, "target")
        os.symlink(target, link)
        self.tool("export", self.uri, link)
        self.assertTrue(os.path.islink(link))
        with open(target, encoding="utf-8") as file:
            self.assertIn("counts", file.read())
        self.tool("check", self.uri)

    def test_rm_leaves_nothing(self):
        self.run_words("a")
        self.tool("rm", self.uri)
        self.assertEqual(os.listdir(self.folder.name), [])
        self.assertIn("does not exist", self.tool("ls", self.uri, status=1))

    def test_who_has_it_open_is_named(self):
        # It waits for its input with the heap open.
        with subprocess.Popen([WORDS, self.uri], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as holder:
            try:
                until = time.monotonic() + 30
                while time.monotonic() < until and subprocess.run(
                        [TOOL, "heap", "ls", self.uri], capture_output=True, timeout=60, check=False).returncode != 0:
                    time.sleep(0.01)
                self.tool("ls", self.uri)  # beside the writer
                self.tool("check", self.uri)
                self.assertIn(f"open for writing by 'words' (process {holder.pid} on ",
                              self.tool("compact", self.uri, status=1))
            finally:
                holder.send_signal(signal.SIGKILL)
        self.run_words("a")

    def test_a_flipped_byte_is_found_or_does_no_harm(self):
        self.run_words("a b c d e f g")
        with open(self.file, "rb") as file:
            whole = bytearray(file.read())
        found = 0
        for at in range(8, len(whole), 4096):
            if not any(whole[at - 8:at + 4088]):
                continue  # never written
            with open(self.file, "r+b") as file:
                file.seek(at)
                file.write(bytes([whole[at] ^ 0xff]))
            done = subprocess.run([TOOL, "heap", "check", self.uri], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertIn(done.returncode, (0, 1), f"byte {at}: {done.stdout}{done.stderr}")
            found += done.returncode
            with open(self.file, "r+b") as file:
                file.seek(at)
                file.write(bytes([whole[at]]))
        self.assertGreater(found, 0)
        self.tool("check", self.uri)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

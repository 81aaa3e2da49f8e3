// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// qft: libquantum's quantum Fourier transform (Debian's libquantum-dev, under the GPL: linked here and nowhere else).
// The register is dense, with every basis state in its place, as the library's own simulations of time have it: 2^24
// states of an amplitude and a number are 256 MiB, and a gate sweeps them. In the register that quantum_new_qureg()
// makes, a Hadamard gate looks every state up in a hash table: random accesses by the ten million.
// `--steps` is how many of the qubits are transformed: n of them take n (n + 1) / 2 gates. The other qubits number
// independent transforms, as in a register of which only a part is transformed (Shor's).
extern "C" {
#include <quantum.h>
void omp_set_num_threads(int);  // of <omp.h>, which comes with gcc, but with clang only in a package of its own
}

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <string>
#include <vector>

#include "common/program.hpp"

namespace farheap::bench {
namespace {

using Amplitude = std::complex<float>;  // laid out as C's float complex
constexpr std::uint64_t kStateBytes = sizeof(Amplitude) + sizeof(unsigned long long);
constexpr double kRounding = 1e-5;  // of an amplitude: single precision, a few dozen gates

int width_for(std::uint64_t bytes) {
  int width = 4;
  while ((kStateBytes << (width + 1)) <= bytes) ++width;
  return width;
}

class Qft final : public Workload {
 public:
  explicit Qft(const Flags& flags)
      : qubits_(static_cast<int>(std::min<std::uint64_t>(flags.steps, width_for(flags.size)))),
        seed_(flags.seed),
        register_(quantum_new_qureg_sparse(1 << width_for(flags.size), width_for(flags.size))),
        blocks_(static_cast<std::uint64_t>(register_.size) >> qubits_) {
    omp_set_num_threads(static_cast<int>(flags.threads));
    const auto start = static_cast<float>(1 / std::sqrt(static_cast<double>(blocks_)));
    for (std::uint64_t state = 0; state < states(); ++state) {
      register_.state[state] = state;
      amplitudes()[state] = state % block() == value_of(state / block()) ? start : 0.0F;
    }
  }
  ~Qft() override { quantum_delete_qureg(&register_); }

  void run_kernel() override { quantum_qft(qubits_, &register_); }

  // A block that holds the value v becomes exp(2 pi i v k / 2^qubits) / sqrt(2^qubits) at the k of reversed bits.
  std::string verify() override {
    const double size = 1 / std::sqrt(static_cast<double>(states()));
    std::vector<std::complex<double>> roots(block());
    for (std::uint64_t k = 0; k < block(); ++k) {
      roots[k] = std::polar(size, 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(block()));
    }
    for (std::uint64_t state = 0; state < states(); ++state) {
      if (register_.state[state] != state) return fmt::format("state {} is not in its place", state);
      const std::uint64_t turns = value_of(state / block()) * reversed(state % block());
      const double error = std::abs(std::complex<double>(amplitudes()[state]) - roots[turns % block()]);
      if (!(error <= kRounding * size)) return fmt::format("state {} is off by {} of {}", state, error, size);
    }
    return "";
  }

  std::uint64_t bytes() const override { return states() * kStateBytes; }
  std::uint64_t steps() const override { return static_cast<std::uint64_t>(qubits_); }
  std::vector<ByteRange> result() override {
    return {bytes_of(amplitudes(), states()), bytes_of(register_.state, states())};
  }
  std::vector<ByteRange> hottest() override { return result(); }  // a gate reads both, and writes amplitudes

 private:
  std::uint64_t states() const { return static_cast<std::uint64_t>(register_.size); }
  std::uint64_t block() const { return std::uint64_t{1} << qubits_; }
  Amplitude* amplitudes() { return reinterpret_cast<Amplitude*>(register_.amplitude); }
  std::uint64_t value_of(std::uint64_t number) const { return random_at(seed_, number) % block(); }

  std::uint64_t reversed(std::uint64_t bits) const {
    std::uint64_t result = 0;
    for (int qubit = 0; qubit < qubits_; ++qubit) result |= ((bits >> qubit) & 1) << (qubits_ - 1 - qubit);
    return result;
  }

  int qubits_;
  std::uint64_t seed_;
  quantum_reg register_;
  std::uint64_t blocks_;  // independent transforms
};

}  // namespace

Program this_program() {
  Program program;
  program.name = "qft";
  program.summary = "libquantum's Fourier transform on a dense register; --steps is how many of its qubits take part";
  program.kind = Kind::kOther;
  program.defaults.size = std::uint64_t{256} << 20;
  program.defaults.steps = 6;
  program.tiny_size = std::uint64_t{256} << 10;
  program.tiny_steps = 4;
  program.cases = {{"qft", {}, {"--size", "64M", "--steps", "4"}}};
  program.prepare = [](const Flags& flags) -> Workload* { return new Qft(flags); };
  return program;
}

}  // namespace farheap::bench

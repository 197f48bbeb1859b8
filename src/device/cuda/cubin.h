// What can be read from the compiler's output: the report of its log, the hash of the machine code, the
// size of kernel parameters and the stack frame in its ELF file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "device/device.h"

namespace cudabk {

// Registers, shared memory and spills from the log of --ptxas-options=-v. kInternal when the log has no report.
Result<KernelReport> parse_compiler_log(std::string_view log);

// "sha256:..." over the code, its literals and the global data that it reads, not over positions, names, notes, debug
// data or objects that nothing reads: equal code, equal hash. kInvalid when the bytes are not a whole 64-bit ELF file.
Result<std::string> machine_code_hash(std::string_view cubin);

// Bytes of all parameters of the kernel with this symbol. kInvalid when the file does not tell.
Result<uint32_t> parameter_bytes(std::string_view cubin, std::string_view symbol);

// Local memory per thread, in bytes, of the kernel with this symbol and of what it calls: spilled registers and arrays
// that are not in registers. kInvalid when the file does not tell.
Result<uint32_t> stack_bytes(std::string_view cubin, std::string_view symbol);

}  // namespace cudabk

// A small op with two families for the tests of dispatch.
#pragma once

#include <string>
#include <vector>

#include "dispatch/profile.h"

namespace cudabk::test {

inline DeviceInfo device(std::string name = "NVIDIA H200", std::string arch = "sm_90a", int cc = 90, int sms = 132) {
  DeviceInfo info;
  info.id = "cuda:0";
  info.name = std::move(name);
  info.arch = std::move(arch);
  info.cc = cc;
  info.sm_count = sms;
  info.l2_bytes = 62914560;
  info.max_shared_bytes = 232448;
  return info;
}

// "vec" runs for n <= 8 only; "tile" needs sm_80 and an even tile; "any" takes everything.
inline const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {"vec",
       {{"warps", {1, 2, 4, 8}, 4}, {"rows", {1, 2}, 1}},
       [](const Problem& p, const Config&, const DeviceInfo&) {
         return p.dim("n") <= 8 ? Support{} : Support::no("more than 8 columns");
       }},
      {"tile",
       {{"tile_m", {32, 64, 128}, 64}},
       [](const Problem&, const Config&, const DeviceInfo& d) {
         return d.cc >= 80 ? Support{} : Support::no("needs sm_80");
       }},
      {"any", {}, [](const Problem&, const Config&, const DeviceInfo&) { return Support{}; }},
  };
  return kFamilies;
}

inline FamilySet family_set() {
  FamilySet set;
  set.by_op["mul_mat"] = families();
  set.dims["mul_mat"] = {"m", "n", "k"};
  set.keys["mul_mat"] = {"q4_K", "q6_K", "f16"};
  return set;
}

inline Problem problem(int64_t n, int64_t m = 4096, int64_t k = 4096, std::string key = "q4_K") {
  return {"mul_mat", std::move(key), {{"m", m}, {"n", n}, {"k", k}}};
}

// A whole file around the content of /tables/mul_mat.
inline std::string file(const std::string& tables, const std::string& device =
                                                       R"("name": "NVIDIA H200", "arch": "sm_90a", "sm_count": 132,
                                                          "l2_bytes": 62914560)") {
  return R"({"schema": "cudabk-profile/1", "device": {)" + device + R"(}, "tables": {"mul_mat": {)" + tables + "}}}";
}

// A hash of a rule's code as `tune` writes it, all of one digit.
inline std::string code_hash(char digit) { return "sha256:" + std::string(64, digit); }

inline const char* const kTable = R"("q4_K": [{"n": [1, 8], "use": "vec", "config": {"warps": 2}}, {"use": "any"}])";

}  // namespace cudabk::test

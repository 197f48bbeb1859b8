#include "ops/copy_cases.h"

#include <fmt/format.h>

#include "formats/dtypes.h"
#include "ops/cases.h"

namespace cudabk {
namespace {

// Dense copies of every type, one to three blocks wide.
void add_byte_cases(std::vector<CaseParams>& cases) {
  for (const DTypeTraits& t : kDTypes) {
    for (int blocks = 1; blocks <= 3; ++blocks) {
      cases.push_back(
          make_case(fmt::format("type={} cols={} rows=2 dim2=3 dim3=4", t.name, blocks * t.block_elements)));
    }
    cases.push_back(make_case(fmt::format("type={} cols={} layout=window", t.name, 3 * t.block_elements)));
  }
}

// f32 into block types and back.
void add_block_cases(std::vector<CaseParams>& cases) {
  for (const std::string pair :
       {"type=f32 type-dst=q4_0", "type=f32 type-dst=q4_1", "type=f32 type-dst=q5_0", "type=f32 type-dst=q5_1",
        "type=f32 type-dst=q8_0", "type=f32 type-dst=iq4_nl", "type=q4_0 type-dst=f32", "type=q4_1 type-dst=f32",
        "type=q5_0 type-dst=f32", "type=q5_1 type-dst=f32", "type=q8_0 type-dst=f32"}) {
    for (const std::string_view shape : {
             "cols=32 rows=3",
             "cols=96 rows=5 dim2=2",
             "cols=256 rows=4 dim2=4 dim3=4",
             "cols=256 rows=2 dim2=3 dim3=4 layout=permuted-0213",
             "cols=64 rows=6 dim2=2 dim3=3 layout=permuted-0321 layout-dst=permuted-0213",
             "cols=32 rows=7 dim2=3 dim3=5 layout=permuted-0312 layout-dst=permuted-0231",
             "cols=1056 rows=9 layout=offset layout-dst=offset",
             "cols=256 rows=5 layout=window layout-dst=window",
             "cols=64 rows=6 dim2=2 layout=half layout-dst=half",
             "cols=2048 rows=35 layout=half layout-dst=half",
             "cols=96 rows=4 dim2=2 cols-dst=64 rows-dst=12",
             "cols=96 rows=4 layout=half cols-dst=64 rows-dst=6 layout-dst=half",  // no common division
             "cols=96 rows=4 layout=offset cols-dst=64 rows-dst=6 layout-dst=half",
             "cols=32 rows=6 dim2=5 layout=permuted-0213 cols-dst=480 rows-dst=2",
             "cols=4096 rows=70",
             "cols=0 rows=4",
         }) {
      cases.push_back(make_case(pair + " " + std::string(shape)));
    }
  }
}

}  // namespace

std::vector<CaseParams> cpy_cases() {
  std::vector<CaseParams> cases;
  add_byte_cases(cases);
  add_block_cases(cases);
  for (const std::string pair :
       {"type=f32", "type=f16", "type=bf16", "type=i32", "type=f32 type-dst=f16", "type=f32 type-dst=bf16",
        "type=f32 type-dst=i32", "type=f16 type-dst=f32", "type=f16 type-dst=bf16", "type=bf16 type-dst=f32",
        "type=bf16 type-dst=f16", "type=i32 type-dst=f32"}) {
    for (const std::string_view shape : {
             "cols=256 rows=4 dim2=4 dim3=4",
             "cols=255 rows=3 dim2=2",
             "cols=256 rows=2 dim2=3 dim3=4 layout=permuted-0213",
             "cols=24 rows=2 dim2=3 dim3=4 layout=permuted-0312 layout-dst=permuted-0213",
             "cols=65 rows=70 dim2=3 dim3=2 layout=permuted-1023",
             "cols=4 rows=256 dim2=3 layout=permuted-1023",
             "cols=64 rows=32 layout=permuted-1023 layout-dst=window",  // a transpose into a slot of a larger buffer
             "cols=33 rows=17 dim2=5 layout=permuted-1203 layout-dst=offset",
             "cols=40 rows=24 dim2=2 layout=permuted-2103",
             "cols=40 rows=24 dim2=2 layout-dst=permuted-1023",
             "cols=64 rows=6 dim2=2 layout=half layout-dst=half",
             "cols=64 rows=6 layout=offset layout-dst=offset",
             "cols=7 rows=5 dim2=3 layout=offset layout-dst=window",
             ("cols=3 rows=5 dim2=7 dim3=32 layout=permuted-3120 cols-dst=32 rows-dst=7 dim2-dst=5 dim3-dst=3 "
              "layout-dst=permuted-2013"),
             "cols=6 rows=4 layout=half cols-dst=3 rows-dst=8 layout-dst=half",
             "cols=6 rows=4 layout=half cols-dst=4 rows-dst=6 layout-dst=half",
             "cols=12 rows=10 dim2=3 cols-dst=360",
             "cols=0 rows=4",
         }) {
      cases.push_back(make_case(pair + " " + std::string(shape)));
    }
  }
  // Very tall, and more than four packs for every resident thread.
  cases.push_back(make_case("cols=2 rows=66000 layout=permuted-1023"));
  cases.push_back(make_case("cols=2 rows=66000 layout=half"));
  cases.push_back(make_case("cols=17 rows=16 dim2=66000 dim3=1 layout=permuted-1023"));
  cases.push_back(make_case("type-dst=f16 cols=2 rows=2097121"));
  cases.push_back(make_case("cols=1024 rows=4400"));
  cases.push_back(make_case("type=f16 type-dst=f32 cols=1024 rows=4400"));
  cases.push_back(make_case("type=i8 cols=1000003"));
  return cases;
}

std::vector<CaseParams> cont_cases() {
  std::vector<CaseParams> cases;
  for (const std::string type : {"type=f32", "type=i32", "type=f16", "type=bf16"}) {
    for (const std::string shape : {" cols=2", " cols=2 dim2=3 dim3=5", " cols=2 rows=3 dim2=5 dim3=7",
                                    " cols=1 rows=4 dim2=4", " cols=1 rows=8 dim2=17", " cols=10 rows=10 dim2=10"}) {
      for (const std::string layout : {" layout=permuted-1023", " layout=slice", " layout=dense"}) {
        cases.push_back(make_case(type + shape + layout));
      }
    }
    cases.push_back(make_case(type + " cols=8 rows=6 dim2=2 layout=half cols-dst=16 rows-dst=6"));
    cases.push_back(make_case(type + " cols=40 rows=33 layout=permuted-1023 cols-dst=1320"));
    cases.push_back(make_case(type + " cols=5 rows=0"));
  }
  cases.push_back(make_case("type=q4_K cols=512 rows=3 dim2=2 cols-dst=1024 rows-dst=3"));
  return cases;
}

}  // namespace cudabk

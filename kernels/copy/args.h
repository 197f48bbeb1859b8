#pragma once

#include "common/rows_args.h"

namespace cudabk {

// Bytes [0, bytes) of src to dst; both aligned to the access width.
struct CopyBytesArgs {
  const void* src = nullptr;
  void* dst = nullptr;
  int64_t bytes = 0;
};

// Rows that are dense on both sides; strides in elements of each side's type.
struct CopyRowsArgs {
  const void* src = nullptr;
  void* dst = nullptr;
  RowGrid grid;
  RowStrides src_strides, dst_strides;
};

// dst dense along dim 0, src dense along dim 1 (stride of dim 0: src_s0). Both have shape [ne0, ne1, ne2, ne3].
struct CopyTransposedArgs {
  const void* src = nullptr;
  void* dst = nullptr;
  int64_t ne0 = 0, ne1 = 0, ne2 = 1;
  int64_t tiles0 = 0,
          tiles1 = 0;  // tiles along dims 0 and 1; block = tile0 + tiles0 * (tile1 + tiles1 * (i2 + ne2 * i3))
  int64_t src_s0 = 0, src_s2 = 0, src_s3 = 0;
  int64_t dst_s1 = 0, dst_s2 = 0, dst_s3 = 0;
};

// Element n in logical order of src goes to element n of dst; each side has its own shape and strides (in elements).
struct CopyStridedArgs {
  const void* src = nullptr;
  void* dst = nullptr;
  int64_t elements = 0;
  int64_t src_ne0 = 1, src_ne1 = 1, src_ne2 = 1;
  int64_t dst_ne0 = 1, dst_ne1 = 1, dst_ne2 = 1;
  int64_t src_s0 = 0, dst_s0 = 0;
  RowStrides src_strides, dst_strides;
};

}  // namespace cudabk

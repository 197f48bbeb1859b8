// What can compute a matrix product: the kernel families, their tunables, and when each can run at all.
#pragma once

#include <span>

#include "dispatch/problem.h"
#include "graph/tensor.h"

namespace cudabk {

// Dims of a mul_mat problem: m, n, k, batch (B2*B3), broadcast (r2*r3), w_dense and x_dense (1: rows follow each other
// without gaps and batches too), f32_precision (1: requested), x_f16 (1: f16 activations), frag (1: the weights are in
// the frag layout and this view of them can be read in place). Key: the weight type.
Problem mul_mat_problem(const Tensor& product);

// In order of last resort. frag_vector, frag_ring, frag_wide, frag_direct, frag_tile, mmvq, mmvf, mmsf, mmsf_ring,
// mmsf_group, mmq, mmf, dequant_gemm, blas, blas_batched.
std::span<const Family> mul_mat_families();

}  // namespace cudabk

/* SPDX-License-Identifier: MIT
 *
 * Which of the compiled kernels this CPU can run. */
#include "models/kernels.h"

#include <string.h>

extern const ts_kernels tsi_kernels_f_base, tsi_kernels_d_base;
#ifdef TS_KERNEL_X86
extern const ts_kernels tsi_kernels_f_v3, tsi_kernels_d_v3, tsi_kernels_f_v4, tsi_kernels_d_v4;

static bool has_v3(void)
{
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}

static bool has_v4(void)
{
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
}
#endif

const ts_kernels *ts_kernels_find(bool is_double, const char *isa)
{
  const bool any = !strcmp(isa, "auto");
#ifdef TS_KERNEL_X86
  if ((any || !strcmp(isa, "v4")) && has_v4())
    return is_double ? &tsi_kernels_d_v4 : &tsi_kernels_f_v4;
  if ((any || !strcmp(isa, "v3")) && has_v3())
    return is_double ? &tsi_kernels_d_v3 : &tsi_kernels_f_v3;
#endif
  if (any || !strcmp(isa, "base")) return is_double ? &tsi_kernels_d_base : &tsi_kernels_f_base;
  return NULL;
}

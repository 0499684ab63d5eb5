# SPDX-License-Identifier: MIT
#
# The kernels (TS_KERNEL_SOURCES) are compiled for {float, double} x {any CPU, x86-64-v3, x86-64-v4};
# TS_KERNEL_DOUBLE and TS_KERNEL_ISA tell the source which one it is, and it names its functions
# after them.  All other files of this folder belong to libtessera_la_SOURCES.
TS_KERNEL_SOURCES =
TS_KERNEL_SOURCES += models/attend_back_cpu.c
TS_KERNEL_SOURCES += models/attend_cpu.c
TS_KERNEL_SOURCES += models/exchange_cpu.c
TS_KERNEL_SOURCES += models/attend_impl.h
TS_KERNEL_SOURCES += models/edge_cpu.c
TS_KERNEL_SOURCES += models/form_cpu.c
TS_KERNEL_SOURCES += models/head_cpu.c
TS_KERNEL_SOURCES += models/kernel_table_cpu.c
TS_KERNEL_SOURCES += models/kernels_impl.h
TS_KERNEL_SOURCES += models/norm_cpu.c
TS_KERNEL_SOURCES += models/packed_cpu.c
TS_KERNEL_SOURCES += models/project_cpu.c
TS_KERNEL_SOURCES += models/radial_cpu.c
TS_KERNEL_SOURCES += models/real.h
TS_KERNEL_SOURCES += models/update_cpu.c

TS_KERNEL_LIBS = models/libkernel_f_base.la models/libkernel_d_base.la
if TS_KERNEL_X86
TS_KERNEL_LIBS += models/libkernel_f_v3.la models/libkernel_d_v3.la
TS_KERNEL_LIBS += models/libkernel_f_v4.la models/libkernel_d_v4.la
endif
noinst_LTLIBRARIES += $(TS_KERNEL_LIBS)

models_libkernel_f_base_la_SOURCES = $(TS_KERNEL_SOURCES)
models_libkernel_f_base_la_CPPFLAGS = $(AM_CPPFLAGS) -DTS_KERNEL_DOUBLE=0 -DTS_KERNEL_ISA=base
models_libkernel_f_base_la_CFLAGS = $(AM_CFLAGS) $(TS_KERNEL_CFLAGS)

models_libkernel_d_base_la_SOURCES = $(TS_KERNEL_SOURCES)
models_libkernel_d_base_la_CPPFLAGS = $(AM_CPPFLAGS) -DTS_KERNEL_DOUBLE=1 -DTS_KERNEL_ISA=base
models_libkernel_d_base_la_CFLAGS = $(AM_CFLAGS) $(TS_KERNEL_CFLAGS)

models_libkernel_f_v3_la_SOURCES = $(TS_KERNEL_SOURCES)
models_libkernel_f_v3_la_CPPFLAGS = $(AM_CPPFLAGS) -DTS_KERNEL_DOUBLE=0 -DTS_KERNEL_ISA=v3
models_libkernel_f_v3_la_CFLAGS = $(AM_CFLAGS) $(TS_KERNEL_CFLAGS) $(TS_KERNEL_V3_CFLAGS)

models_libkernel_d_v3_la_SOURCES = $(TS_KERNEL_SOURCES)
models_libkernel_d_v3_la_CPPFLAGS = $(AM_CPPFLAGS) -DTS_KERNEL_DOUBLE=1 -DTS_KERNEL_ISA=v3
models_libkernel_d_v3_la_CFLAGS = $(AM_CFLAGS) $(TS_KERNEL_CFLAGS) $(TS_KERNEL_V3_CFLAGS)

models_libkernel_f_v4_la_SOURCES = $(TS_KERNEL_SOURCES)
models_libkernel_f_v4_la_CPPFLAGS = $(AM_CPPFLAGS) -DTS_KERNEL_DOUBLE=0 -DTS_KERNEL_ISA=v4
models_libkernel_f_v4_la_CFLAGS = $(AM_CFLAGS) $(TS_KERNEL_CFLAGS) $(TS_KERNEL_V4_CFLAGS)

models_libkernel_d_v4_la_SOURCES = $(TS_KERNEL_SOURCES)
models_libkernel_d_v4_la_CPPFLAGS = $(AM_CPPFLAGS) -DTS_KERNEL_DOUBLE=1 -DTS_KERNEL_ISA=v4
models_libkernel_d_v4_la_CFLAGS = $(AM_CFLAGS) $(TS_KERNEL_CFLAGS) $(TS_KERNEL_V4_CFLAGS)

# Weight files and descriptions.
libtessera_la_SOURCES += models/amx.c
libtessera_la_SOURCES += models/amx.h
libtessera_la_SOURCES += models/clebsch.c
libtessera_la_SOURCES += models/clebsch.h
libtessera_la_SOURCES += models/description.c
libtessera_la_SOURCES += models/description.h
libtessera_la_SOURCES += models/radial.c
libtessera_la_SOURCES += models/radial_net.c
libtessera_la_SOURCES += models/radial_net.h
libtessera_la_SOURCES += models/radial.h
libtessera_la_SOURCES += models/safetensors.c
libtessera_la_SOURCES += models/safetensors.h
libtessera_la_SOURCES += models/safetensors_impl.h
libtessera_la_SOURCES += models/safetensors_read.c
libtessera_la_SOURCES += models/safetensors_write.c
libtessera_la_SOURCES += models/seed.c
libtessera_la_SOURCES += models/seed.h
libtessera_la_SOURCES += models/tensors.c
libtessera_la_SOURCES += models/tensors.h
libtessera_la_SOURCES += models/kernels.c
libtessera_la_SOURCES += models/kernels.h
libtessera_la_SOURCES += models/matrix.c
libtessera_la_SOURCES += models/matrix.h
libtessera_la_SOURCES += models/model.c
libtessera_la_SOURCES += models/model.h

# SPDX-License-Identifier: MIT
libtessera_la_SOURCES += comm/blocks.c
libtessera_la_SOURCES += comm/blocks.h
libtessera_la_SOURCES += comm/collective.c
libtessera_la_SOURCES += comm/collective.h
libtessera_la_SOURCES += comm/collective_buffer.c
libtessera_la_SOURCES += comm/collective_buffer.h
libtessera_la_SOURCES += comm/collective_choice.c
libtessera_la_SOURCES += comm/collective_impl.h
libtessera_la_SOURCES += comm/collective_line.c
libtessera_la_SOURCES += comm/collective_line.h
libtessera_la_SOURCES += comm/collective_op.c
libtessera_la_SOURCES += comm/collective_op.h
libtessera_la_SOURCES += comm/collective_setup.c
libtessera_la_SOURCES += comm/collective_shot.c
libtessera_la_SOURCES += comm/collective_shot.h
libtessera_la_SOURCES += comm/collective_slot.h
libtessera_la_SOURCES += comm/directory.c
libtessera_la_SOURCES += comm/directory.h
libtessera_la_SOURCES += comm/directory_table.c
libtessera_la_SOURCES += comm/peers.c
libtessera_la_SOURCES += comm/peers.h
libtessera_la_SOURCES += comm/peers_deliver.c
libtessera_la_SOURCES += comm/peers_deliver.h
libtessera_la_SOURCES += comm/plan.c
libtessera_la_SOURCES += comm/plan.h
libtessera_la_SOURCES += comm/route.c
libtessera_la_SOURCES += comm/route.h
libtessera_la_SOURCES += comm/route_settings.c
libtessera_la_SOURCES += comm/share.c
libtessera_la_SOURCES += comm/share.h
libtessera_la_SOURCES += comm/shm.c
libtessera_la_SOURCES += comm/shm.h
libtessera_la_SOURCES += comm/sparse.c
libtessera_la_SOURCES += comm/sparse.h
libtessera_la_SOURCES += comm/world.c
libtessera_la_SOURCES += comm/world.h

# Collectives among GPUs: beside the library, as nothing in it uses them yet.
EXTRA_DIST += comm/collective_gpu.cu
EXTRA_DIST += comm/collective_gpu.h
EXTRA_DIST += comm/collective_gpu_kernels.h
CLEANFILES += comm/collective_gpu.o
NVCCFLAGS = -O2 -std=c++17 -Xcompiler -fPIC
comm/collective_gpu.o: comm/collective_gpu.cu comm/collective_gpu_kernels.h comm/collective_gpu.h \
  comm/collective_op.h
	@$(MKDIR_P) comm
	$(NVCC) $(NVCCFLAGS) -I$(top_srcdir) -c -o $@ $(srcdir)/comm/collective_gpu.cu

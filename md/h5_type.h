/* SPDX-License-Identifier: MIT
 *
 * The types of values in files, apart from md/h5.h so that readers need no MPI. */
#ifndef TS_H5_TYPE_H
#define TS_H5_TYPE_H

typedef enum tsi_h5_type { TSI_H5_DOUBLE, TSI_H5_INT64, TSI_H5_INT32, TSI_H5_UINT8 } tsi_h5_type;

#endif

/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for CMSIS-NN in tests of the code that calls it: types with its fields, in its order,
 * and functions that print their arguments. A pointer to elements is a number here.
 */
#ifndef ARM_NNFUNCTIONS_H
#define ARM_NNFUNCTIONS_H

#include <stdint.h>

typedef enum {
	ARM_CMSIS_NN_SUCCESS = 0,
	ARM_CMSIS_NN_ARG_ERROR = -1,
} arm_cmsis_nn_status;

typedef struct {
	int32_t w, h;
} cmsis_nn_tile;

typedef struct {
	int32_t min, max;
} cmsis_nn_activation;

typedef struct {
	void *buf;
	int32_t size;
} cmsis_nn_context;

typedef struct {
	int32_t n, h, w, c;
} cmsis_nn_dims;

typedef struct {
	int32_t *multiplier, *shift;
} cmsis_nn_per_channel_quant_params;

typedef struct {
	int32_t *multiplier, *shift, is_per_channel;
} cmsis_nn_quant_params;

typedef struct {
	int32_t input_offset, output_offset;
	cmsis_nn_tile stride, padding, dilation;
	cmsis_nn_activation activation;
} cmsis_nn_conv_params;

typedef struct {
	int32_t input_offset, output_offset, ch_mult;
	cmsis_nn_tile stride, padding, dilation;
	cmsis_nn_activation activation;
} cmsis_nn_dw_conv_params;

typedef struct {
	cmsis_nn_tile stride, padding;
	cmsis_nn_activation activation;
} cmsis_nn_pool_params;

typedef struct {
	int32_t input_offset, filter_offset, output_offset;
	cmsis_nn_activation activation;
} cmsis_nn_fc_params;

typedef const cmsis_nn_dims *dims;

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *parameters, dims in,
						dims filter, dims out);
int32_t arm_convolve_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_conv_params *parameters, dims in,
						    dims filter, dims out);
int32_t arm_convolve_wrapper_s8_get_buffer_size_mve(const cmsis_nn_conv_params *parameters, dims in,
						    dims filter, dims out);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *parameters,
						      dims in, dims filter, dims out);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_dw_conv_params *parameters,
							  dims in, dims filter, dims out);
int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_mve(const cmsis_nn_dw_conv_params *parameters,
							  dims in, dims filter, dims out);
int32_t arm_avgpool_s8_get_buffer_size(int width, int channels);
int32_t arm_avgpool_s8_get_buffer_size_dsp(int width, int channels);
int32_t arm_avgpool_s8_get_buffer_size_mve(int width, int channels);
arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context *context,
					    const cmsis_nn_conv_params *parameters,
					    const cmsis_nn_per_channel_quant_params *quantization,
					    dims in_dims, const int8_t *in, dims filter_dims,
					    const int8_t *filter, dims bias_dims,
					    const int32_t *bias, dims out_dims, int8_t *out);
arm_cmsis_nn_status
arm_depthwise_conv_wrapper_s8(const cmsis_nn_context *context,
			      const cmsis_nn_dw_conv_params *parameters,
			      const cmsis_nn_per_channel_quant_params *quantization, dims in_dims,
			      const int8_t *in, dims filter_dims, const int8_t *filter,
			      dims bias_dims, const int32_t *bias, dims out_dims, int8_t *out);
arm_cmsis_nn_status arm_fully_connected_wrapper_s8(const cmsis_nn_context *context,
						   const cmsis_nn_fc_params *parameters,
						   const cmsis_nn_quant_params *quantization,
						   dims in_dims, const int8_t *in, dims filter_dims,
						   const int8_t *filter, dims bias_dims,
						   const int32_t *bias, dims out_dims, int8_t *out);
arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context *context,
				   const cmsis_nn_pool_params *parameters, dims in_dims,
				   const int8_t *in, dims filter_dims, dims out_dims, int8_t *out);
arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *context,
				    const cmsis_nn_pool_params *parameters, dims in_dims,
				    const int8_t *in, dims filter_dims, dims out_dims, int8_t *out);
void arm_softmax_s8(const int8_t *in, int32_t rows, int32_t size, int32_t multiplier, int32_t shift,
		    int32_t least, int8_t *out);
arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t *in, const int8_t *other, int32_t offset,
					   int32_t multiplier, int32_t shift, int32_t other_offset,
					   int32_t other_multiplier, int32_t other_shift,
					   int32_t left_shift, int8_t *out, int32_t out_offset,
					   int32_t out_multiplier, int32_t out_shift, int32_t low,
					   int32_t high, int32_t size);

#endif

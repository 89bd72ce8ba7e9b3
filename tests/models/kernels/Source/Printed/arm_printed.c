/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each kernel prints its arguments. A core with DSP needs 4 bytes of scratch memory more than a
 * core without, and one with MVE 8 more: a test of the generated code sets what a core needs
 * besides, and the kernels' result.
 */
#include <stdint.h>
#include <stdio.h>

#include "arm_nnfunctions.h"

__attribute__((weak)) int further_bytes;
__attribute__((weak)) arm_cmsis_nn_status result;

static int number(const void *pointer)
{
	return (int)(intptr_t)pointer;
}

static void print_tile(const char *name, cmsis_nn_tile tile)
{
	printf(" %s h%d w%d", name, tile.h, tile.w);
}

static void print_dims(const char *name, dims shape)
{
	printf(" %s %dx%dx%dx%d", name, shape->n, shape->h, shape->w, shape->c);
}

static void print_bounds(int offset, int output, cmsis_nn_activation bounds)
{
	printf(" offsets %d %d bounds %d %d", offset, output, bounds.min, bounds.max);
}

static arm_cmsis_nn_status print_end(const cmsis_nn_context *context, const int8_t *in,
				     const int8_t *out)
{
	printf(" scratch %d %s in %d out %d\n", context->size,
	       context->buf == NULL ? "none" : "some", number(in), number(out));
	return result;
}

static void print_weights(const int8_t *weights, const int32_t *bias, const int32_t *multiplier,
			  const int32_t *shift)
{
	printf(" weights %d bias %d multiplier %d shift %d", number(weights), number(bias),
	       number(multiplier), number(shift));
}

int32_t arm_convolve_wrapper_s8_get_buffer_size(const cmsis_nn_conv_params *parameters, dims in,
						dims filter, dims out)
{
	return parameters->padding.h + in->h + filter->h + out->h + further_bytes + 0;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_conv_params *parameters, dims in,
						    dims filter, dims out)
{
	return parameters->padding.h + in->h + filter->h + out->h + further_bytes + 4;
}

int32_t arm_convolve_wrapper_s8_get_buffer_size_mve(const cmsis_nn_conv_params *parameters, dims in,
						    dims filter, dims out)
{
	return parameters->padding.h + in->h + filter->h + out->h + further_bytes + 8;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size(const cmsis_nn_dw_conv_params *parameters,
						      dims in, dims filter, dims out)
{
	return parameters->padding.h + in->h + filter->h + out->h + further_bytes + 0;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_dsp(const cmsis_nn_dw_conv_params *parameters,
							  dims in, dims filter, dims out)
{
	return parameters->padding.h + in->h + filter->h + out->h + further_bytes + 4;
}

int32_t arm_depthwise_conv_wrapper_s8_get_buffer_size_mve(const cmsis_nn_dw_conv_params *parameters,
							  dims in, dims filter, dims out)
{
	return parameters->padding.h + in->h + filter->h + out->h + further_bytes + 8;
}

int32_t arm_avgpool_s8_get_buffer_size(int width, int channels)
{
	return width + channels + further_bytes + 0;
}

int32_t arm_avgpool_s8_get_buffer_size_dsp(int width, int channels)
{
	return width + channels + further_bytes + 4;
}

int32_t arm_avgpool_s8_get_buffer_size_mve(int width, int channels)
{
	return width + channels + further_bytes + 8;
}

arm_cmsis_nn_status arm_convolve_wrapper_s8(const cmsis_nn_context *context,
					    const cmsis_nn_conv_params *parameters,
					    const cmsis_nn_per_channel_quant_params *quantization,
					    dims in_dims, const int8_t *in, dims filter_dims,
					    const int8_t *filter, dims bias_dims,
					    const int32_t *bias, dims out_dims, int8_t *out)
{
	printf("conv");
	print_bounds(parameters->input_offset, parameters->output_offset, parameters->activation);
	print_tile("stride", parameters->stride);
	print_tile("padding", parameters->padding);
	print_tile("dilation", parameters->dilation);
	print_dims("in", in_dims);
	print_dims("filter", filter_dims);
	print_dims("out", out_dims);
	print_dims("bias", bias_dims);
	print_weights(filter, bias, quantization->multiplier, quantization->shift);
	return print_end(context, in, out);
}

arm_cmsis_nn_status
arm_depthwise_conv_wrapper_s8(const cmsis_nn_context *context,
			      const cmsis_nn_dw_conv_params *parameters,
			      const cmsis_nn_per_channel_quant_params *quantization, dims in_dims,
			      const int8_t *in, dims filter_dims, const int8_t *filter,
			      dims bias_dims, const int32_t *bias, dims out_dims, int8_t *out)
{
	printf("dw");
	printf(" depth %d", parameters->ch_mult);
	print_bounds(parameters->input_offset, parameters->output_offset, parameters->activation);
	print_tile("stride", parameters->stride);
	print_tile("padding", parameters->padding);
	print_tile("dilation", parameters->dilation);
	print_dims("in", in_dims);
	print_dims("filter", filter_dims);
	print_dims("out", out_dims);
	print_dims("bias", bias_dims);
	print_weights(filter, bias, quantization->multiplier, quantization->shift);
	return print_end(context, in, out);
}

arm_cmsis_nn_status arm_fully_connected_wrapper_s8(const cmsis_nn_context *context,
						   const cmsis_nn_fc_params *parameters,
						   const cmsis_nn_quant_params *quantization,
						   dims in_dims, const int8_t *in, dims filter_dims,
						   const int8_t *filter, dims bias_dims,
						   const int32_t *bias, dims out_dims, int8_t *out)
{
	printf("fc");
	printf(" channels %d filter offset %d", quantization->is_per_channel,
	       parameters->filter_offset);
	print_bounds(parameters->input_offset, parameters->output_offset, parameters->activation);
	print_dims("in", in_dims);
	print_dims("filter", filter_dims);
	print_dims("out", out_dims);
	print_dims("bias", bias_dims);
	print_weights(filter, bias, quantization->multiplier, quantization->shift);
	return print_end(context, in, out);
}

arm_cmsis_nn_status arm_avgpool_s8(const cmsis_nn_context *context,
				   const cmsis_nn_pool_params *parameters, dims in_dims,
				   const int8_t *in, dims filter_dims, dims out_dims, int8_t *out)
{
	printf("avg");
	print_bounds(0, 0, parameters->activation);
	print_tile("stride", parameters->stride);
	print_tile("padding", parameters->padding);
	print_dims("in", in_dims);
	print_dims("filter", filter_dims);
	print_dims("out", out_dims);
	return print_end(context, in, out);
}

arm_cmsis_nn_status arm_max_pool_s8(const cmsis_nn_context *context,
				    const cmsis_nn_pool_params *parameters, dims in_dims,
				    const int8_t *in, dims filter_dims, dims out_dims, int8_t *out)
{
	printf("max");
	print_bounds(0, 0, parameters->activation);
	print_tile("stride", parameters->stride);
	print_tile("padding", parameters->padding);
	print_dims("in", in_dims);
	print_dims("filter", filter_dims);
	print_dims("out", out_dims);
	return print_end(context, in, out);
}

void arm_softmax_s8(const int8_t *in, int32_t rows, int32_t size, int32_t multiplier, int32_t shift,
		    int32_t least, int8_t *out)
{
	printf("soft %d %d %d %d %d in %d out %d\n", rows, size, multiplier, shift, least,
	       number(in), number(out));
}

arm_cmsis_nn_status arm_elementwise_add_s8(const int8_t *in, const int8_t *other, int32_t offset,
					   int32_t multiplier, int32_t shift, int32_t other_offset,
					   int32_t other_multiplier, int32_t other_shift,
					   int32_t left_shift, int8_t *out, int32_t out_offset,
					   int32_t out_multiplier, int32_t out_shift, int32_t low,
					   int32_t high, int32_t size)
{
	printf("add %d: %d %d %d, %d: %d %d %d, left %d, %d: %d %d %d, %d %d, size %d\n",
	       number(in), offset, multiplier, shift, number(other), other_offset, other_multiplier,
	       other_shift, left_shift, number(out), out_offset, out_multiplier, out_shift, low,
	       high, size);
	return result;
}

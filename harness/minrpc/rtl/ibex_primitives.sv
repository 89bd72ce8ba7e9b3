// SPDX-License-Identifier: Apache-2.0
// The two cells that Ibex leaves to the target technology.

module prim_buf #(
  parameter int Width = 1
) (
  input        [Width-1:0] in_i,
  output logic [Width-1:0] out_o
);
  assign out_o = in_i;
endmodule

module prim_clock_gating (
  input        clk_i,
  input        en_i,
  input        test_en_i,
  output logic clk_o
);
  logic enabled;

  always_latch if (!clk_i) enabled = en_i | test_en_i;
  assign clk_o = enabled & clk_i;
endmodule

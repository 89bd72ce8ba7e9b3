/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * OBI: an instruction port and a data port. Each has a request, a grant, and an answer after at
 * least one cycle.
 */
#ifndef BUS_OBI_H_
#define BUS_OBI_H_

#include "probes.hpp"
#include "system.hpp"

/* At most one request is under way; the next is granted in the cycle of its answer. */
struct ObiPort {
	bool busy = false;
	Answer answer = {};

	bool valid() const
	{
		return busy && answer.waits == 0;
	}

	/* After the core's outputs have settled. Returns true if it may take a request. */
	bool advance()
	{
		if (busy && answer.waits != 0) {
			answer.waits--;
			return false;
		}
		busy = false;
		return true;
	}

	void take(const Answer &given)
	{
		busy = true;
		answer = given;
	}
};

class Bus
{
      public:
	Bus(Vcore &given_core, System &given_system) : core(given_core), system(given_system)
	{
	}

	void reset()
	{
		instructions = {};
		data = {};
	}

	/* Sets the core's inputs for a cycle. */
	void drive()
	{
		core.instr_gnt_i = !instructions.busy || instructions.valid();
		core.instr_rvalid_i = instructions.valid();
		core.instr_rdata_i = instructions.answer.data;
		core.data_gnt_i = !data.busy || data.valid();
		core.data_rvalid_i = data.valid();
		core.data_rdata_i = data.answer.data;
#ifdef BUS_HAS_ERRORS
		core.instr_err_i = instructions.answer.error;
		core.data_err_i = data.answer.error;
#endif
	}

	/* Takes the requests of the cycle. */
	void sample()
	{
		if (instructions.advance() && core.instr_req_o) {
			instructions.take(system.fetch(core.instr_addr_o));
		}
		if (data.advance() && core.data_req_o) {
			data.take(access());
		}
	}

      private:
	Answer access()
	{
		uint32_t address = core.data_addr_o;
		Answer answer = core.data_we_o
					? system.store(address, core.data_wdata_o, core.data_be_o)
					: system.load(address);

#ifndef BUS_HAS_ERRORS
		must(core, system, answer,
		     core.data_we_o ? "store access fault" : "load access fault",
		     core.data_we_o ? 7 : 5, address);
#endif
		return answer;
	}

	Vcore &core;
	System &system;
	ObiPort instructions;
	ObiPort data;
};

#endif /* BUS_OBI_H_ */

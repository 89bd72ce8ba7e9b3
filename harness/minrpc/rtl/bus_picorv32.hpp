/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * PicoRV32's own bus: one port, whose answer may come in the cycle of the request.
 */
#ifndef BUS_PICORV32_H_
#define BUS_PICORV32_H_

#include "probes.hpp"
#include "system.hpp"

class Bus
{
      public:
	Bus(Vcore &given_core, System &given_system) : core(given_core), system(given_system)
	{
	}

	void reset()
	{
		busy = false;
	}

	void drive()
	{
		core.mem_ready = 0;
	}

	void sample()
	{
		if (core.trap) {
			stop(core, system, "illegal instruction", 2, 0);
		}
		if (!core.mem_valid) {
			return;
		}
		if (!busy) {
			busy = true;
			answer = ask();
		} else if (answer.waits != 0) {
			answer.waits--;
		}
		if (answer.waits == 0) {
			busy = false;
			core.mem_ready = 1;
			core.mem_rdata = answer.data;
		}
	}

      private:
	Answer ask()
	{
		if (core.mem_wstrb != 0) {
			return must(core, system,
				    system.store(core.mem_addr, core.mem_wdata, core.mem_wstrb),
				    "store access fault", 7, core.mem_addr);
		}
		if (core.mem_instr) {
			return must(core, system, system.fetch(core.mem_addr),
				    "instruction access fault", 1, core.mem_addr);
		}
		return must(core, system, system.load(core.mem_addr), "load access fault", 5,
			    core.mem_addr);
	}

	Vcore &core;
	System &system;
	bool busy = false;
	Answer answer = {};
};

#endif /* BUS_PICORV32_H_ */

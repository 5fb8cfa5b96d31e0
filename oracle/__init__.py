"""The truth: the emulator, analysis states, interventions, outputs, exact rollouts and the effects they measure."""

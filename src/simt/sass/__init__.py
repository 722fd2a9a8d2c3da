"""Machine code (SASS): what ptxas makes of a program, with the control bits by which the hardware issues it.

`machine_code` compiles PTX with ptxas, `Cubin.parse` reads the result, `disassemble` decodes its
instructions.
"""

from .control import Control
from .cubin import Cubin, Kernel, Parameter
from .disassembler import Instruction, disassemble

__all__ = ["Control", "Cubin", "Instruction", "Kernel", "Parameter", "disassemble"]

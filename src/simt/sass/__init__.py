"""Machine code (SASS): what ptxas makes of a program, with the control bits by which the hardware issues it.

`machine_code` compiles PTX with ptxas, `Cubin.parse` reads the result, `disassemble` decodes its
instructions; `assemble` makes a program of text like theirs.
"""

from .assembler import assemble
from .control import Control
from .cubin import Cubin, CubinKernel, CubinParameter
from .disassembler import Instruction, disassemble

__all__ = ["Control", "Cubin", "CubinKernel", "CubinParameter", "Instruction", "assemble", "disassemble"]

"""Creation of textures, samplers and surfaces on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from .texture import Source, Surface, Texture, TextureSampler, make_sampler, make_surface, make_texture

if TYPE_CHECKING:
    from .gpu import GPU


class Texturing:
    """The methods of `GPU` that make textures, samplers and surfaces."""

    def texture(
        self,
        source: Source | Sequence[Source],
        *,
        kind: str | None = None,
        channels: int = 1,
        width: int | None = None,
        filter: str = "point",
        address: str | Sequence[str] = "clamp",
        normalized: bool = False,
        read: str = "element",
        border: Sequence[float] = (0, 0, 0, 0),
        srgb: bool = False,
        level_filter: str = "point",
        level_bias: float = 0,
        level_range: tuple[float, float] = (0, 1000),
    ) -> Texture:
        """A texture over an array; an argument for kernels that take a `cudaTextureObject_t`.

        source: an array of the device, whose memory is read, or of the host, which is copied; elements of 8,
            16 or 32-bit integers, float16 or float32, in the order (z or layer, y, x, channel). A list of
            arrays: the levels of a mipmap, each half the size of the one before.
        kind: "1d", "2d", "3d" (by default, by the array's dimensions), "linear" (memory for `tex1Dfetch`),
            "1d_layered", "2d_layered", "cubemap" (6 faces: +x, -x, +y, -y, +z, -z), "cubemap_layered".
        channels: 1, 2 or 4 components of a texel, the array's last dimension if more than 1.
        width: texels of a row that count, where rows are padded.
        filter: "point" or "linear". address: "clamp", "border", "wrap" or "mirror", one or one for each of
            x, y, z; the last two need normalized coordinates. border: what "border" returns.
        normalized: coordinates go from 0 to 1, else from 0 to the number of texels.
        read: "element", or "normalized": integers of 8 or 16 bits as numbers from 0 or -1 to 1.
        srgb: colours of 8 bits are made linear. level_filter, level_bias, level_range: of mipmaps.

        Raises LaunchError for what does not fit together. docs/functional/textures.md gives the arithmetic.
        """
        return make_texture(
            cast("GPU", self),
            source,
            kind=kind,
            channels=channels,
            width=width,
            filter=filter,
            address=address,
            normalized=normalized,
            read=read,
            border=border,
            srgb=srgb,
            level_filter=level_filter,
            level_bias=level_bias,
            level_range=level_range,
        )

    def surface(self, source: Source, *, kind: str | None = None, channels: int = 1) -> Surface:
        """A surface over an array; an argument for kernels that take a `cudaSurfaceObject_t`. What kernels
        write is read back with `.numpy()`, or in the array if it was one of the device.

        source, kind, channels: as of `texture`. Raises LaunchError for what does not fit together.
        """
        return make_surface(cast("GPU", self), source, kind=kind, channels=channels)

    def sampler(
        self,
        *,
        filter: str = "point",
        address: str | Sequence[str] = "clamp",
        unnormalized: bool = False,
        border: Sequence[float] = (0, 0, 0, 0),
        level_filter: str = "point",
        level_bias: float = 0,
        level_range: tuple[float, float] = (0, 1000),
    ) -> TextureSampler:
        """A sampler for a `.samplerref` variable of PTX. unnormalized: coordinates are texels, whatever the
        texture says. The rest: as of `texture`, as are the errors."""
        return make_sampler(
            cast("GPU", self),
            filter=filter,
            address=address,
            unnormalized=unnormalized,
            border=border,
            level_filter=level_filter,
            level_bias=level_bias,
            level_range=level_range,
        )

#pragma once
#include "machine/collective.hpp"

/// What lanes of a warp do together, for PTX and machine code: the lanes of the mask take part.
namespace simt::functional {

/// Each lane reads Op::a of another lane in its segment, or its own if that is outside; Op::b and Op::c say
/// which lane and what segment, as PTX's b and c. Needs CollectiveOperands; their predicate, if there is one,
/// holds where the lane is inside.
enum class Shuffle : uint8_t { Up, Down, Butterfly, Index };
Handler shuffle_handler(Shuffle mode);

/// Of the predicate at Op::a, negated if Op::immediate is 1: a predicate that is the same in all lanes, or a
/// word with a bit per lane (Ballot).
enum class Vote : uint8_t { All, Any, Uniform, Ballot };
Handler vote_handler(Vote vote);

/// Op::destination: the lanes with the same value, of 32 or 64 bits. Needs CollectiveOperands.
Handler match_any_handler(bool wide);
/// Op::destination: all lanes if they have the same value, otherwise 0; so does the predicate of
/// CollectiveOperands.
Handler match_all_handler(bool wide);

/// Of 32-bit values; the result is the same in all lanes.
enum class Reduction : uint8_t { Add, Min, Max, And, Or, Xor };
Handler reduction_handler(Reduction which, bool is_signed);
/// Of f32: minimum or maximum, of magnitudes if `abs`. NaN does not count, unless `nan`, or all are NaN.
Handler float_reduction_handler(bool largest, bool abs, bool nan);

/// The lanes that take part; lanes whose guard is false do not.
void run_active_lanes(Context& c, const Op& op);
/// Elects the lowest lane: its number, if there is a destination, and the predicate of CollectiveOperands,
/// which holds for it alone. Where their `a` is a predicate, of the lanes for which Op::a holds, negated if
/// Op::immediate is 1.
void run_elect(Context& c, const Op& op);

}  // namespace simt::functional

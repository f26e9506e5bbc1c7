// The definitions of usual.hpp.
#include <weft/usual.hpp>

namespace weft::inline WEFT_ABI {
WEFT_USUAL_ENGINES()
}

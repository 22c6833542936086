// SPDX-License-Identifier: BSD-3-Clause
// What somebody may have meant who has written a word that there is not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stp {

// The one of `words` that differs from `word` by a slip of the fingers: a letter that is wrong,
// missing, too many, or in the other's place; two of them in a word of five letters or more, and
// capitals. "": there is none, or there are several.
std::string_view similar_word(std::string_view word, const std::vector<std::string_view>& words);

}  // namespace stp

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/tokenizer.h"

#include <QString>

#include <string>
#include <string_view>

namespace muster::test {

/// `id@begin-end id@begin-end`: an encoding as one line.
inline QString shown(const tokenizer::Encoding& encoding)
{
    QString out;
    for (std::size_t i = 0; i < encoding.size(); ++i) {
        out += QStringLiteral("%1%2@%3-%4")
                   .arg(i == 0 ? "" : " ")
                   .arg(encoding.ids[i])
                   .arg(encoding.begin[i])
                   .arg(encoding.end[i]);
    }
    return out;
}

inline QString shown(const tokenizer::Tokenizer& tokenizer, std::string_view text)
{
    tokenizer::Encoding encoding;
    tokenizer.encode(text, encoding);
    return shown(encoding);
}

} // namespace muster::test

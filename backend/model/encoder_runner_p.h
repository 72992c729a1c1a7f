// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/encoder_p.h"
#include "model/model.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::model {

/// The items of a unit that can be computed, packed, and their logits.
struct RunItems {
    std::vector<std::size_t> places;    ///< in the unit, of each packed item [n]
    std::vector<std::uint32_t> offsets; ///< tokens of the packed items [n + 1]
    const float* logits = nullptr;      ///< as Encoder::run(); lives until the next run
};

/// Checks the items of a unit, leaves out what cannot be computed, and deals the rest to the
/// encoders of the threads.
class EncoderRunner final {
public:
    /// `encoders`: one for each thread, over the same weights.
    EncoderRunner(const EncoderShape& shape, std::vector<std::unique_ptr<Encoder>> encoders)
        : m_shape(shape), m_encoders(std::move(encoders))
    {
    }

    [[nodiscard]] const EncoderShape& shape() const { return m_shape; }
    /// Why an item cannot be computed: its length, a token or a segment outside the tables.
    [[nodiscard]] std::optional<std::string> problem(const wire::Unit& unit,
                                                     std::size_t place) const;
    /// Error: Internal (`E-MODEL-090`).
    [[nodiscard]] Result<RunItems> run(const wire::Unit& unit);

private:
    Status run(const PackedTokens& packed, float* logits);

    EncoderShape m_shape;
    std::vector<std::unique_ptr<Encoder>> m_encoders;
    Buffer m_logits;
};

/// The bytes of a text, for the payload of an output that could not be computed.
[[nodiscard]] std::vector<std::byte> payloadOf(std::string_view text);

} // namespace muster::model

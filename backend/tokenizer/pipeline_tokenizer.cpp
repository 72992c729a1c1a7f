// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/pipeline_tokenizer_p.h"

namespace muster::tokenizer {

namespace {

bool isContinuation(char byte)
{
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

} // namespace

PipelineTokenizer::PipelineTokenizer(PipelineParts parts)
    : StagedTokenizer(std::move(parts.description), std::move(parts.normalizer)),
      m_steps(std::move(parts.steps)), m_model(std::move(parts.model))
{
    Hasher hasher;
    hasher.add("pipeline 1").add(std::uint64_t{m_steps.size()});
    // Words end before a space when a step cuts there or the model never looks over one.
    bool endsWords = m_model->splitsAtBlanks() && parts.replacesSpaces;
    bool isProved = true;
    for (const PreTokenizerStep& step : m_steps) {
        if (const auto* split = std::get_if<SplitStep>(&step)) {
            split->addToDigest(hasher);
            const bool isBlanks =
                split->kind == SplitStep::Kind::blanks || split->kind == SplitStep::Kind::words;
            endsWords = endsWords || (isBlanks && split->behavior == SplitBehavior::removed);
            isProved = isProved && split->kind != SplitStep::Kind::pattern &&
                       split->kind != SplitStep::Kind::known;
            continue;
        }
        const auto& metaspace = std::get<MetaspaceStep>(step);
        hasher.add(metaspace.mark).add(static_cast<std::uint64_t>(metaspace.prefix));
        hasher.add(std::uint64_t{metaspace.splits});
        endsWords = endsWords || metaspace.splits ||
                    (m_model->splitsAtBlanks() && metaspace.mark == blankMark);
    }
    if (endsWords && isProved)
        setCuts(Cuts::beforeSpace);
    normalizer().addToDigest(hasher);
    addToDigest(hasher, description());
    m_model->addToDigest(hasher);
    setDigest(hasher.result());
}

std::optional<std::int32_t> PipelineTokenizer::idOf(std::string_view token) const
{
    for (const AddedToken& added : description().addedTokens) {
        if (added.content == token)
            return added.id;
    }
    return m_model->idOf(token);
}

void PipelineTokenizer::apply(const MetaspaceStep& step, bool opensText, NormalizedText& text,
                              std::vector<Range>& pieces) const
{
    using Prefix = MetaspaceStep::Prefix;
    NormalizedText out;
    std::vector<Range> words;
    out.bytes.reserve(text.bytes.size() * 3 / 2);
    const auto append = [&](std::string_view bytes, std::uint32_t begin, std::uint32_t end) {
        out.bytes.append(bytes);
        out.begin.insert(out.begin.end(), bytes.size(), begin);
        out.end.insert(out.end.end(), bytes.size(), end);
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Range& piece = pieces[i];
        const std::string_view bytes =
            std::string_view(text.bytes).substr(piece.begin, piece.end - piece.begin);
        std::size_t word = out.bytes.size();
        const bool hasMark = bytes.starts_with(' ') || bytes.starts_with(step.mark);
        const bool isFirst = opensText && i == 0 && piece.begin == 0;
        if (!hasMark &&
            (step.prefix == Prefix::always || (step.prefix == Prefix::first && isFirst)))
            append(step.mark, text.begin[piece.begin], text.end[piece.begin]);
        bool isAtStart = out.bytes.size() == word;
        for (std::size_t at = piece.begin; at < piece.end;) {
            const bool isSpace = text.bytes[at] == ' ';
            const bool isMark =
                isSpace ||
                std::string_view(text.bytes).substr(at, piece.end - at).starts_with(step.mark);
            if (isMark && step.splits && !isAtStart) {
                // A run of marks: each one but the last is a word of its own, as the mark is
                // merged with what follows it unless that is a mark, too.
                words.push_back({word, out.bytes.size()});
                word = out.bytes.size();
            }
            isAtStart = false;
            if (isSpace) {
                append(step.mark, text.begin[at], text.end[at]);
                ++at;
                continue;
            }
            std::size_t next = at + (isMark ? step.mark.size() : std::size_t{1});
            for (; at < next; ++at) {
                out.bytes.push_back(text.bytes[at]);
                out.begin.push_back(text.begin[at]);
                out.end.push_back(text.end[at]);
            }
        }
        if (out.bytes.size() > word)
            words.push_back({word, out.bytes.size()});
    }
    text = std::move(out);
    pieces = std::move(words);
}

void PipelineTokenizer::encodePart(const Part& part, EncodeSpace& space, TokenSink& sink) const
{
    std::vector<Range> pieces{{part.begin, part.end}};
    std::vector<Range> next;
    std::string_view bytes = part.text;
    NormalizedText changed; // once a step has changed the text
    bool isChanged = false;
    for (const PreTokenizerStep& step : m_steps) {
        if (const auto* split = std::get_if<SplitStep>(&step)) {
            next.clear();
            for (const Range& piece : pieces)
                split->split(bytes, piece, m_classes, next);
            pieces.swap(next);
            continue;
        }
        if (!isChanged) {
            changed.bytes.assign(bytes.substr(part.begin, part.end - part.begin));
            for (std::size_t i = part.begin; i < part.end; ++i) {
                changed.begin.push_back(static_cast<std::uint32_t>(i));
                changed.end.push_back(static_cast<std::uint32_t>(i + 1));
            }
            for (Range& piece : pieces)
                piece = {piece.begin - part.begin, piece.end - part.begin};
            isChanged = true;
        }
        apply(std::get<MetaspaceStep>(step), part.opensText, changed, pieces);
        bytes = changed.bytes;
    }
    const std::size_t first = sink.count();
    for (const Range& piece : pieces)
        m_model->put(bytes.substr(piece.begin, piece.end - piece.begin),
                     static_cast<std::uint32_t>(piece.begin), space, sink);
    // Back to the text, and to whole code points.
    sink.place(first, [&](std::uint32_t& begin, std::uint32_t& end) {
        if (isChanged) {
            const std::uint32_t from = begin;
            begin = from < changed.begin.size() ? changed.begin[from]
                                                : static_cast<std::uint32_t>(part.end);
            end = end > from && end <= changed.end.size() ? changed.end[end - 1] : begin;
        }
        end = std::min(end, static_cast<std::uint32_t>(part.end));
        while (begin > part.begin && begin < part.end && isContinuation(part.text[begin]))
            --begin;
        while (end > part.begin && end < part.end && isContinuation(part.text[end]))
            ++end;
        begin = std::min(begin, end);
    });
}

} // namespace muster::tokenizer

// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <QtTest>

namespace utf8 = muster::utf8;

class TestUtf8 final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyCodePointIsReadBack()
    {
        for (char32_t c = 0; c <= 0x10FFFF; ++c) {
            if (c >= 0xD800 && c <= 0xDFFF)
                continue;
            std::string text;
            utf8::append(text, c);
            const auto decoded = utf8::decode(text, 0);
            if (!decoded.valid || decoded.codePoint != c || decoded.size != text.size())
                QFAIL(qPrintable(QStringLiteral("U+%1").arg(std::uint32_t(c), 0, 16)));
        }
    }

    void whatIsNoCodePointBecomesTheReplacement()
    {
        for (const char32_t c : {char32_t{0xD800}, char32_t{0xDFFF}, char32_t{0x110000}}) {
            std::string text;
            utf8::append(text, c);
            QCOMPARE(text, std::string("\xEF\xBF\xBD"));
        }
    }

    void brokenBytesAreFound_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<int>("place");
        const auto row = [](const char* name, const QByteArray& text, int place) {
            QTest::newRow(name) << text << place;
        };
        row("empty", QByteArray(), -1);
        row("ascii", "abcdefghijklmnop", -1);
        row("mixed", "a\xC3\xA4\xE4\xB8\xAD\xF0\x9F\x98\x80z", -1);
        row("lone continuation", "ab\x80", 2);
        row("overlong 2", "\xC0\xAF", 0);
        row("overlong 3", "x\xE0\x80\xAF", 1);
        row("overlong 4", "\xF0\x80\x80\xAF", 0);
        row("surrogate", "\xED\xA0\x80", 0);
        row("above the last", "\xF4\x90\x80\x80", 0);
        row("lead F5", "\xF5\x80\x80\x80", 0);
        row("cut off", "abcdefghij\xE4\xB8", 10);
        row("FF after eight", "12345678\xFF", 8);
    }

    void brokenBytesAreFound()
    {
        QFETCH(QByteArray, text);
        QFETCH(int, place);
        const std::string_view view(text.constData(), std::size_t(text.size()));
        const auto found = utf8::firstInvalid(view);
        QCOMPARE(found ? int(*found) : -1, place);
        const std::string repaired = utf8::repaired(view);
        QVERIFY(!utf8::firstInvalid(repaired));
        QCOMPARE(utf8::length(repaired), utf8::length(view));
        if (place < 0)
            QCOMPARE(repaired, std::string(view));
    }

    void offsetsAreThoseOfTheCodePoints()
    {
        const std::string text = "a\xC3\xA4\xE4\xB8\xAD\xFFz";
        const std::vector<std::size_t> wanted{0, 1, 3, 6, 7, 8};
        QVERIFY(utf8::codePointOffsets(text) == wanted);
        QCOMPARE(utf8::length(text), std::size_t{5});
        for (std::size_t i = 0; i < wanted.size(); ++i)
            QVERIFY(utf8::byteOffset(text, i) == wanted[i]);
        QVERIFY(!utf8::byteOffset(text, 6));
        QVERIFY(utf8::byteOffset({}, 0) == std::size_t{0});
    }
};

QTEST_GUILESS_MAIN(TestUtf8)
#include "tst_utf8.moc"

// SPDX-License-Identifier: GPL-2.0-only

#include "json.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace tcpsbed
{

namespace
{

constexpr int kDeepest = 64;

} // namespace

// Recursive descent over one text (RFC 8259).
class Reader
{
  public:
    explicit Reader(const std::string& text)
        : m_at(text.c_str()),
          m_begin(m_at),
          m_end(m_at + text.size())
    {
    }

    Json Whole()
    {
        Json value = Value(0);
        Space();
        if (m_at != m_end)
        {
            Fail("one value");
        }
        return value;
    }

  private:
    [[noreturn]] void Fail(const char* wanted) const
    {
        throw std::runtime_error(std::string("JSON: ") + wanted + " expected at byte " +
                                 std::to_string(m_at - m_begin));
    }

    void Space()
    {
        while (m_at < m_end && std::strchr(" \t\r\n", *m_at) && *m_at)
        {
            m_at++;
        }
    }

    bool Take(char c)
    {
        Space();
        if (m_at < m_end && *m_at == c)
        {
            m_at++;
            return true;
        }
        return false;
    }

    void Need(char c, const char* wanted)
    {
        if (!Take(c))
        {
            Fail(wanted);
        }
    }

    Json Value(int depth)
    {
        if (depth > kDeepest)
        {
            Fail("less depth");
        }
        Json value;
        Space();
        if (m_at == m_end)
        {
            Fail("a value");
        }
        switch (*m_at)
        {
        case '{':
            Object(value, depth);
            break;
        case '[':
            List(value, depth);
            break;
        case '"':
            value.m_kind = Json::Kind::Text;
            value.m_text = Text();
            break;
        case 't':
            Word("true", value, Json::Kind::Bool, 1);
            break;
        case 'f':
            Word("false", value, Json::Kind::Bool, 0);
            break;
        case 'n':
            Word("null", value, Json::Kind::Null, 0);
            break;
        default:
            Number(value);
        }
        return value;
    }

    void Word(const char* word, Json& value, Json::Kind kind, int64_t whole)
    {
        const size_t length = std::strlen(word);
        if (static_cast<size_t>(m_end - m_at) < length || std::strncmp(m_at, word, length) != 0)
        {
            Fail("true, false or null");
        }
        m_at += length;
        value.m_kind = kind;
        value.m_whole = whole;
    }

    void Number(Json& value)
    {
        // The text ends with a zero byte, so that neither call runs beyond it.
        char* end = nullptr;
        value.m_number = std::strtod(m_at, &end);
        if (end == m_at)
        {
            Fail("a value");
        }
        char* whole_end = nullptr;
        value.m_whole = std::strtoll(m_at, &whole_end, 10);
        if (whole_end != end)
        {
            value.m_whole = static_cast<int64_t>(value.m_number);
        }
        value.m_kind = Json::Kind::Number;
        m_at = end;
    }

    std::string Text()
    {
        Need('"', "a text");
        std::string text;
        while (m_at < m_end && *m_at != '"')
        {
            char c = *m_at++;
            if (c == '\\' && m_at < m_end)
            {
                c = Escaped(text);
            }
            if (c)
            {
                text += c;
            }
        }
        Need('"', "the end of a text");
        return text;
    }

    // The character behind a backslash; one beyond ASCII is added to the text as a question mark: names are for people.
    char Escaped(std::string& text)
    {
        const char c = *m_at++;
        switch (c)
        {
        case 'n':
            return '\n';
        case 't':
            return '\t';
        case 'r':
            return '\r';
        case 'b':
            return '\b';
        case 'f':
            return '\f';
        case 'u':
            m_at += m_end - m_at < 4 ? m_end - m_at : 4;
            text += '?';
            return 0;
        default:
            return c;
        }
    }

    void List(Json& value, int depth)
    {
        value.m_kind = Json::Kind::List;
        m_at++;
        if (Take(']'))
        {
            return;
        }
        do
        {
            value.m_list.push_back(Value(depth + 1));
        } while (Take(','));
        Need(']', "the end of a list");
    }

    void Object(Json& value, int depth)
    {
        value.m_kind = Json::Kind::Object;
        m_at++;
        if (Take('}'))
        {
            return;
        }
        do
        {
            Space();
            const std::string name = Text();
            Need(':', "a colon");
            value.m_members[name] = Value(depth + 1);
        } while (Take(','));
        Need('}', "the end of an object");
    }

    const char* m_at;
    const char* m_begin;
    const char* m_end;
};

Json
Json::Read(const std::string& text)
{
    return Reader(text).Whole();
}

const Json&
Json::operator[](size_t index) const
{
    static const Json none;
    return index < m_list.size() ? m_list[index] : none;
}

const Json&
Json::operator[](const std::string& name) const
{
    static const Json none;
    const auto found = m_members.find(name);
    return found == m_members.end() ? none : found->second;
}

} // namespace tcpsbed

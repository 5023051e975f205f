// SPDX-License-Identifier: GPL-2.0-only
//
// JSON as far as this program reads it: one value out of one line.

#ifndef TCPSBED_JSON_H
#define TCPSBED_JSON_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tcpsbed
{

// A value. What is asked of a value that is none of that kind is empty: 0, "", no members.
class Json
{
  public:
    // Reads one value; throws std::runtime_error that says what is wrong and where.
    static Json Read(const std::string& text);

    bool IsNull() const
    {
        return m_kind == Kind::Null;
    }

    bool Bool() const
    {
        return m_kind == Kind::Bool && m_whole != 0;
    }

    double Number() const
    {
        return m_kind == Kind::Number ? m_number : 0;
    }

    // A number without its fraction; exact where it was written without one.
    int64_t Whole() const
    {
        return m_kind == Kind::Number ? m_whole : 0;
    }

    const std::string& Text() const
    {
        return m_text;
    }

    const std::vector<Json>& List() const
    {
        return m_list;
    }

    // Item of a list; null beyond its end.
    const Json& operator[](size_t index) const;

    // Member of an object; null if it has none of that name.
    const Json& operator[](const std::string& name) const;

  private:
    friend class Reader;
    enum class Kind
    {
        Null,
        Bool,
        Number,
        Text,
        List,
        Object,
    };

    Kind m_kind{Kind::Null};
    double m_number{0};
    int64_t m_whole{0};
    std::string m_text;
    std::vector<Json> m_list;
    std::map<std::string, Json> m_members;
};

} // namespace tcpsbed

#endif

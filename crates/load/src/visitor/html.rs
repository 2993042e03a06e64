//! Just enough HTML to find forms: start and end tags with their attributes, and the text between them.

/// A piece of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// `<name a=b>`; the name in lower case.
    Open(String, Attributes),
    /// `</name>`; the name in lower case.
    Close(String),
    /// Text as it stands, entities not decoded.
    Text(&'a str),
}

/// The attributes of a tag; names in lower case, values decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// The value of the first attribute of this name; empty for one without value.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// True when the attribute is there at all.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }
}

/// Reads a page piece by piece. Comments and the content of `script` and `style` are left out.
pub struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Pieces<'a> {
    /// From the beginning of `page`.
    pub fn of(page: &'a str) -> Self {
        Pieces { rest: page }
    }

    fn skip_past(&mut self, end: &str) {
        let at = self.rest.as_bytes().windows(end.len()).position(|part| part.eq_ignore_ascii_case(end.as_bytes()));
        self.rest = at.and_then(|at| self.rest.get(at + end.len()..)).unwrap_or("");
    }

    fn open(&mut self) -> Piece<'a> {
        let end = self.rest.find(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/').unwrap_or(self.rest.len());
        let name = self.rest[..end].to_ascii_lowercase();
        let (attributes, rest) = attributes(&self.rest[end..]);
        self.rest = rest;
        if name == "script" || name == "style" {
            self.skip_past(&format!("</{name}"));
            self.skip_past(">");
        }
        Piece::Open(name, attributes)
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            let at = self.rest.find('<').unwrap_or(self.rest.len());
            if at > 0 {
                let (text, rest) = self.rest.split_at(at);
                self.rest = rest;
                return Some(Piece::Text(text));
            }
            self.rest = self.rest.strip_prefix('<')?;
            if let Some(rest) = self.rest.strip_prefix("!--") {
                self.rest = rest;
                self.skip_past("-->");
            } else if let Some(rest) = self.rest.strip_prefix('/') {
                let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(rest.len());
                self.skip_past(">");
                return Some(Piece::Close(rest[..end].to_ascii_lowercase()));
            } else if self.rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Some(self.open());
            } else if self.rest.starts_with(['!', '?']) {
                self.skip_past(">");
            } else {
                return Some(Piece::Text("<"));
            }
        }
    }
}

/// Reads attributes up to the `>` that ends the tag; answers them and what follows.
fn attributes(mut rest: &str) -> (Attributes, &str) {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() || rest.starts_with('>') {
            return (Attributes(found), rest.strip_prefix('>').unwrap_or(rest));
        }
        // A name may begin with `=`, but has at least one character: so this always moves on.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let ends = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/');
        let end = rest[first..].find(ends).map_or(rest.len(), |at| at + first);
        let name = rest[..end].to_ascii_lowercase();
        rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_whitespace());
        let value = match rest.strip_prefix('=') {
            Some(after) => {
                let (value, after) = value(after.trim_start_matches(|c: char| c.is_ascii_whitespace()));
                rest = after;
                decode(value)
            }
            None => String::new(),
        };
        found.push((name, value));
    }
}

fn value(rest: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(inner) = rest.strip_prefix(quote) {
            return inner.split_once(quote).unwrap_or((inner, ""));
        }
    }
    rest.split_at(rest.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(rest.len()))
}

/// Decodes character references: the five of XML, `&nbsp;`, and numbers. Others stay as they stand.
pub fn decode(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let reference = rest[1..].split_once(';').map(|(name, _)| name).filter(|name| name.len() <= 8);
        if let Some((name, character)) = reference.and_then(|name| character(name).map(|c| (name, c))) {
            decoded.push(character);
            rest = &rest[name.len() + 2..];
        } else {
            decoded.push('&');
            rest = &rest[1..];
        }
    }
    decoded.push_str(rest);
    decoded
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some('\u{a0}'),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            code.ok().and_then(char::from_u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_tag(text: &str) -> Attributes {
        match Pieces::of(text).next() {
            Some(Piece::Open(_, attributes)) => attributes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn attributes_may_be_written_in_every_way() {
        let tag = only_tag("<INPUT Type = 'hidden' name=csrf\n value=\"a &quot;b&quot;\" required data-x=a/b />");
        assert_eq!(tag.value("type"), Some("hidden"));
        assert_eq!(tag.value("name"), Some("csrf"));
        assert_eq!(tag.value("value"), Some("a \"b\""));
        assert_eq!(tag.value("data-x"), Some("a/b"));
        assert!(tag.has("required") && !tag.has("disabled"));
    }

    #[test]
    fn a_quoted_value_may_hold_what_would_end_a_tag() {
        assert_eq!(only_tag("<a title='x > y' href=z>").value("href"), Some("z"));
        assert_eq!(only_tag("<a title='never closed>").value("title"), Some("never closed>"));
    }

    #[test]
    fn comments_scripts_and_styles_hold_no_tags() {
        let page = "<!doctype html><!-- <form> --><script>'<form>'</SCRIPT ><style>a<b</style><p>1 < 2</p>";
        let names: Vec<_> = Pieces::of(page)
            .filter_map(|piece| match piece {
                Piece::Open(name, _) => Some(name),
                Piece::Close(name) => Some(format!("/{name}")),
                Piece::Text(_) => None,
            })
            .collect();
        assert_eq!(names, ["script", "style", "p", "/p"]);
    }

    #[test]
    fn character_references_are_decoded_and_the_rest_is_left() {
        assert_eq!(decode("a=1&amp;b=2&#38;c&#x3D;3&apos;&lt;&gt;"), "a=1&b=2&c=3'<>");
        assert_eq!(decode("a=1&b=2;&unknown;&#xzz;&"), "a=1&b=2;&unknown;&#xzz;&");
        assert_eq!(decode("è&amp;ü"), "è&ü");
    }

    #[test]
    fn a_page_that_is_cut_off_ends_quietly() {
        for page in ["<", "</", "<!--", "<a", "<a b", "<a b=", "<a b='", "<script>", "<é", "<a é=ü"] {
            assert!(Pieces::of(page).count() <= 2, "{page}");
        }
    }
}

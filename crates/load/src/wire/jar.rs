//! The cookies of one visitor.

/// Cookies by name. A visitor speaks to one provider only, so domain and path are not kept: every cookie is sent with every
/// request of the sign-in pages, which is what a browser does with cookies whose path is `/`.
#[derive(Clone, Debug, Default)]
pub struct Jar(Vec<(String, String)>);

impl Jar {
    /// Takes in one `Set-Cookie` value (RFC 6265 §5.2, §5.3): a new value replaces the old, an expired one removes it.
    pub fn keep(&mut self, set_cookie: &str) {
        let mut parts = set_cookie.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return;
        }
        self.0.retain(|(kept, _)| kept != name);
        if !is_expired(parts) {
            self.0.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Forgets everything, as a new visitor would.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// True when there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Name and value of each cookie, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// `Max-Age` decides when it is there (RFC 6265 §5.3). Otherwise `Expires` in the last century counts: no clock is read for
/// it, and servers that remove a cookie this way write 1970.
fn is_expired<'a>(attributes: impl Iterator<Item = &'a str>) -> bool {
    let mut by_date = false;
    for attribute in attributes {
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        let (name, value) = (name.trim(), value.trim());
        if name.eq_ignore_ascii_case("max-age")
            && let Ok(seconds) = value.parse::<i64>()
        {
            return seconds <= 0;
        }
        if name.eq_ignore_ascii_case("expires") {
            let mut words = value.split([' ', '-']).filter(|word| word.len() == 4);
            by_date = words.find_map(|word| word.parse::<u16>().ok()).is_some_and(|year| year < 2000);
        }
    }
    by_date
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(lines: &[&str]) -> Vec<(String, String)> {
        let mut jar = Jar::default();
        lines.iter().for_each(|line| jar.keep(line));
        jar.0
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_new_value_replaces_the_old_one() {
        let kept = jar(&["sid=a; Path=/; HttpOnly", "flow=b=c", "sid=d"]);
        assert_eq!(kept, pairs(&[("flow", "b=c"), ("sid", "d")]));
    }

    #[test]
    fn max_age_zero_or_a_past_date_removes() {
        assert_eq!(jar(&["sid=a", "sid=; Max-Age=0"]), []);
        assert_eq!(jar(&["sid=a", "sid=x; expires=Thu, 01 Jan 1970 00:00:00 GMT"]), []);
        assert_eq!(jar(&["sid=a", "sid=x; Expires=Thu, 01-Jan-1970 00:00:01 GMT; Path=/"]), []);
    }

    #[test]
    fn max_age_wins_over_expires() {
        let line = "sid=a; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60";
        assert_eq!(jar(&[line]), pairs(&[("sid", "a")]));
        assert_eq!(jar(&["sid=a; Expires=Fri, 01 Jan 2100 00:00:00 GMT"]), pairs(&[("sid", "a")]));
    }

    #[test]
    fn what_has_no_name_is_not_kept() {
        assert_eq!(jar(&["novalue", "=x", ""]), []);
    }
}

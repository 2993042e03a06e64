//! The cookies of one visitor.

use super::Url;

/// A cookie, and where it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    /// The domain; `None` means that it is sent to every host.
    domain: Option<String>,
    /// Whether it was set with `Domain`, and so is sent to subdomains, too.
    below: bool,
    path: String,
}

/// Cookies by name, domain and path (RFC 6265 §5.3). `Secure` is ignored: browsers also send such cookies to this
/// machine in plain text.
#[derive(Clone, Debug, Default)]
pub struct Jar(Vec<Cookie>);

impl Jar {
    /// Stores one `Set-Cookie` value of unknown origin: for every host, and for every path unless it names one.
    pub fn keep(&mut self, set_cookie: &str) {
        self.take(None, set_cookie);
    }

    /// Stores one `Set-Cookie` value that came from `url` (RFC 6265 §5.2, §5.3): a new value replaces the old one, an
    /// expired one removes it.
    pub fn keep_from(&mut self, url: &Url, set_cookie: &str) {
        self.take(Some(url), set_cookie);
    }

    fn take(&mut self, url: Option<&Url>, set_cookie: &str) {
        let mut parts = set_cookie.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return;
        }
        let domain =
            attribute(parts.clone(), "domain").map(|domain| domain.trim_start_matches('.').to_ascii_lowercase());
        let domain = domain.filter(|domain| !domain.is_empty());
        if domain.as_ref().is_some_and(|domain| url.is_some_and(|url| !is_within(url.host(), domain))) {
            return;
        }
        let path = attribute(parts.clone(), "path").filter(|path| path.starts_with('/'));
        let cookie = Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            below: domain.is_some(),
            domain: domain.or_else(|| url.map(|url| url.host().to_owned())),
            path: path.or_else(|| url.map(folder)).unwrap_or("/").to_owned(),
        };
        let same =
            |kept: &Cookie| (&kept.name, &kept.domain, &kept.path) == (&cookie.name, &cookie.domain, &cookie.path);
        self.0.retain(|kept| !same(kept));
        if !is_expired(parts) {
            // Cookies with longer paths are sent first (RFC 6265 §5.4).
            let at = self.0.partition_point(|kept| kept.path.len() >= cookie.path.len());
            self.0.insert(at, cookie);
        }
    }

    /// Removes all cookies, as for a new visitor.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns name and value of each cookie, wherever it is sent.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|cookie| (cookie.name.as_str(), cookie.value.as_str()))
    }

    /// Returns name and value of each cookie for `url`, in the order to send them.
    pub fn sent_to<'a>(&'a self, url: &'a Url) -> impl Iterator<Item = (&'a str, &'a str)> {
        let host = url.host();
        let known = move |domain: &str, below: bool| host == domain || below && is_within(host, domain);
        let goes = move |cookie: &&Cookie| {
            cookie.domain.as_deref().is_none_or(|domain| known(domain, cookie.below)) && is_on(url.path(), &cookie.path)
        };
        self.0.iter().filter(goes).map(|cookie| (cookie.name.as_str(), cookie.value.as_str()))
    }
}

/// Returns the last attribute of that name; earlier ones do not count (RFC 6265 §5.3).
fn attribute<'a>(attributes: impl Iterator<Item = &'a str>, wanted: &str) -> Option<&'a str> {
    let pairs = attributes.filter_map(|attribute| attribute.split_once('='));
    pairs.filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted)).last().map(|(_, value)| value.trim())
}

/// Whether a host matches a cookie's domain (RFC 6265 §5.1.3).
fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether a path matches a cookie's path (RFC 6265 §5.1.4).
fn is_on(path: &str, cookie: &str) -> bool {
    let rest = path.strip_prefix(cookie);
    rest.is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}

/// Returns the path of a cookie that names none (RFC 6265 §5.1.4).
fn folder(url: &Url) -> &str {
    match url.path().rfind('/') {
        None | Some(0) => "/",
        Some(at) => &url.path()[..at],
    }
}

/// Whether a cookie has expired. `Max-Age` decides if present (RFC 6265 §5.3). Otherwise a year before 2000 in
/// `Expires` counts: no clock is read for it, and servers that remove a cookie this way write 1970.
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

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// Returns the cookies that `lines` from /a/b leave for /a/c.
    fn jar(lines: &[&str]) -> Vec<(String, String)> {
        let mut jar = Jar::default();
        lines.iter().for_each(|line| jar.keep_from(&url("http://localhost/a/b?c"), line));
        jar.sent_to(&url("http://localhost/a/c?d")).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_new_value_replaces_the_old_one() {
        let kept = jar(&["sid=a; Path=/; HttpOnly", "flow=b=c; Path=/", "sid=d; Path=/"]);
        assert_eq!(kept, pairs(&[("flow", "b=c"), ("sid", "d")]));
    }

    #[test]
    fn max_age_zero_or_a_past_date_removes() {
        assert_eq!(jar(&["sid=a", "sid=; Max-Age=0"]), []);
        assert_eq!(jar(&["sid=a", "sid=x; expires=Thu, 01 Jan 1970 00:00:00 GMT"]), []);
        assert_eq!(jar(&["sid=a; Path=/", "sid=x; Expires=Thu, 01-Jan-1970 00:00:01 GMT; Path=/"]), []);
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

    /// Red without `is_on(..)` in `sent_to`, and without the path in `same`: providers keep one cookie of a name per
    /// flow, and remove theirs below one path while another stays.
    #[test]
    fn cookies_of_one_name_live_side_by_side_on_their_paths() {
        assert_eq!(jar(&["flow=1; Path=/a", "flow=; Path=/b; Max-Age=0"]), pairs(&[("flow", "1")]));
        assert_eq!(jar(&["x=1; Path=/", "x=2; Path=/a", "x=3; Path=/b"]), pairs(&[("x", "2"), ("x", "1")]));
        assert_eq!(jar(&["x=1; Path=/a/", "y=2; Path=/a/c", "z=3; Path=/a/cc"]), pairs(&[("y", "2"), ("x", "1")]));
        assert_eq!(jar(&["x=1; Path=relative", "y=2; Path="]), pairs(&[("x", "1"), ("y", "2")]), "its own folder");
    }

    /// Red without `host == domain`: another host must not get a host's session.
    #[test]
    fn cookies_go_to_their_host_and_below_it_where_they_say_so() {
        let mut jar = Jar::default();
        let login = url("http://login.id.localhost/");
        ["own=1", "all=2; Domain=.ID.localhost", "other=3; Domain=example.com", "no=4; Domain=gin.id.localhost"]
            .iter()
            .for_each(|line| jar.keep_from(&login, line));
        let names = |to: &str| jar.sent_to(&url(to)).map(|(name, _)| name).collect::<Vec<_>>().join(" ");
        let sent =
            ["http://login.id.localhost:1/", "http://id.localhost/", "http://x.id.localhost/", "http://localhost/"];
        assert_eq!(sent.map(names), ["own all", "all", "all", ""]);
        jar.keep("any=5");
        assert_eq!(jar.sent_to(&url("http://elsewhere/x")).collect::<Vec<_>>(), [("any", "5")]);
        assert_eq!(jar.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["own", "all", "any"]);
    }
}

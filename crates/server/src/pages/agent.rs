//! A browser's `User-Agent` in two words, by which users recognize their own devices.

/// Headers are read only up to this length.
const LONGEST: usize = 1024;

/// Names by a mark in the header; the first match counts, because each browser also claims to be older ones.
const BROWSERS: [(&str, &str); 12] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("HeadlessChrome/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
    ("Wget/", "Wget"),
];

const SYSTEMS: [(&str, &str); 8] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
];

/// Returns the browser and the system that `header` names, if it does.
pub(super) fn recognize(header: &str) -> (Option<&'static str>, Option<&'static str>) {
    let header = &header[..header.floor_char_boundary(LONGEST)];
    let named =
        |table: &[(&str, &'static str)]| table.iter().find(|(mark, _)| header.contains(mark)).map(|(_, name)| *name);
    (named(&BROWSERS), named(&SYSTEMS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_browsers_are_recognised() {
        for (header, browser, system) in [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", Some("Firefox"), Some("Linux")),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0",
                Some("Edge"),
                Some("Windows"),
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
                Some("Safari"),
                Some("iPhone"),
            ),
            (
                "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0 Mobile Safari/537.36",
                Some("Chrome"),
                Some("Android"),
            ),
            ("curl/8.5.0", Some("curl"), None),
            ("", None, None),
        ] {
            assert_eq!(recognize(header), (browser, system), "{header}");
        }
        assert_eq!(recognize(&"é".repeat(100_000)), (None, None));
    }
}

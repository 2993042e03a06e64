//! Styles, scripts and the logo: compiled in, named by their content, so that browsers may cache them for ever.

use rules::secret::{Handle, hexadecimal};
use std::sync::LazyLock;

/// A file that pages refer to.
#[derive(Debug)]
pub struct Asset {
    /// The path below the realm's base, with a hash of the content: `/assets/page.1f2e….css`.
    pub path: String,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The content.
    pub bytes: &'static [u8],
    name: &'static str,
}

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The length of the hash in a name.
const HASH: usize = 16;

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    vec![
        asset("page.css", CSS, include_str!("assets/page.css")),
        asset("page.js", SCRIPT, include_str!("assets/page.js")),
        asset("post.js", SCRIPT, include_str!("assets/post.js")),
        asset("setup.js", SCRIPT, include_str!("assets/setup.js")),
        asset("try.js", SCRIPT, include_str!("assets/try.js")),
        asset("logo.svg", SVG, include_str!("assets/logo.svg")),
    ]
});

/// Returns all assets, for the doors to serve with `Cache-Control: public, max-age=31536000, immutable`.
pub fn assets() -> &'static [Asset] {
    &ASSETS
}

/// Returns this version's asset for a path in a page of another version. While nodes are upgraded one by one, a browser
/// may get a page from one node and request its assets from another.
pub fn successor(path: &str) -> Option<&'static Asset> {
    let (stem, rest) = path.strip_prefix("/assets/")?.split_once('.')?;
    let (hash, extension) = rest.split_once('.')?;
    let is_hash = hash.len() == HASH && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    ASSETS.iter().find(|asset| is_hash && asset.name.split_once('.') == Some((stem, extension)))
}

/// Returns the path of the asset `name`.
pub(super) fn path(name: &str) -> &'static str {
    ASSETS.iter().find(|asset| asset.name == name).map_or("/assets/missing", |asset| &asset.path)
}

fn asset(name: &'static str, content_type: &'static str, text: &'static str) -> Asset {
    let hash = hexadecimal(&Handle::of(text).0[..HASH / 2]);
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, "txt"));
    Asset { path: format!("/assets/{stem}.{hash}.{extension}"), content_type, bytes: text.as_bytes(), name }
}

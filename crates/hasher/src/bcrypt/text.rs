//! Stored hashes as text: `$2b$10$`, 22 characters of salt, 31 of tag.
//!
//! Both are in bcrypt's own base64 (`./A-Za-z0-9`, no padding). Four bits of the last character of the salt and two of
//! the last one of the tag stand for nothing: they are written as zero and ignored when read, because some
//! implementations copy the salt as they were given it. So a hash with such bits is the same [`Hash`], and is written
//! canonically. All else is strict: one spelling of the flavor, two digits of the cost, 60 bytes in all.

use std::{fmt, str::FromStr};

use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig, general_purpose::NO_PAD},
};

use super::{Flavor, MAX_COST, MIN_COST, TAG_BYTES};

const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::BCRYPT, LENIENT);
const LENIENT: GeneralPurposeConfig = NO_PAD.with_decode_allow_trailing_bits(true);

/// Characters of the salt; the tag's follow at once.
const SALT_CHARS: usize = 22;

/// A stored bcrypt hash: everything but the password. Prints only flavor and cost.
///
/// ```
/// use hasher::bcrypt::{Flavor, Hash};
///
/// let text = "$2b$10$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui";
/// let hash: Hash = text.parse()?;
/// assert_eq!((hash.flavor, hash.cost), (Flavor::B, 10));
/// assert_eq!(hash.to_string(), text);
/// # Ok::<(), hasher::bcrypt::BadText>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Hash {
    /// The name in front: `2a`, `2b`, `2x` or `2y`.
    pub flavor: Flavor,
    /// The binary logarithm of the rounds, [`MIN_COST`] to [`MAX_COST`]. With any other number in it, what is printed is
    /// no hash, and nothing reads it: [`Hash::of_parts`] refuses such a cost.
    pub cost: u32,
    /// The salt.
    pub salt: [u8; 16],
    /// The tag, to be compared in constant time.
    pub tag: [u8; TAG_BYTES],
}

impl fmt::Debug for Hash {
    /// Prints neither salt nor tag: a log is no place for anything that helps to guess a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hash").field("flavor", &self.flavor).field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// Why a text is not a bcrypt hash. The reason is fixed and repeats nothing of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadText(pub &'static str);

impl BadText {
    /// The flavor is unknown.
    pub const FLAVOR: BadText = BadText("is not 2a, 2b, 2x or 2y");
    /// The cost is a number outside bcrypt's range.
    pub const COST: BadText = BadText("cost is not 4 to 31");
    const DIGITS: BadText = BadText("cost is not two digits");
    const BODY: BadText = BadText("salt and tag are not 22 and 31 characters of its base64");
}

impl fmt::Display for BadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed bcrypt hash: {}", self.0)
    }
}

impl std::error::Error for BadText {}

impl Flavor {
    const ALL: [Flavor; 4] = [Flavor::A, Flavor::B, Flavor::X, Flavor::Y];

    /// The name in a stored hash, between the first two `$`.
    pub const fn name(self) -> &'static str {
        match self {
            Flavor::A => "2a",
            Flavor::B => "2b",
            Flavor::X => "2x",
            Flavor::Y => "2y",
        }
    }

    /// The flavor of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flavor| flavor.name() == name)
    }
}

impl Hash {
    /// Makes a hash of separate pieces: `salt` and `tag` are 22 and 31 characters of bcrypt's base64.
    ///
    /// # Errors
    /// When the cost is not [`MIN_COST`] to [`MAX_COST`], or salt or tag are anything else.
    pub fn of_parts(flavor: Flavor, cost: u32, salt: &str, tag: &str) -> Result<Self, BadText> {
        if !(MIN_COST..=MAX_COST).contains(&cost) {
            return Err(BadText::COST);
        }
        let (salt, tag) = (decode(salt).ok_or(BadText::BODY)?, decode(tag).ok_or(BadText::BODY)?);
        Ok(Hash { flavor, cost, salt, tag })
    }

    /// The 22 characters of the salt.
    pub fn salt_text(&self) -> String {
        BASE64.encode(self.salt)
    }

    /// The 31 characters of the tag.
    pub fn tag_text(&self) -> String {
        BASE64.encode(self.tag)
    }
}

impl FromStr for Hash {
    type Err = BadText;

    /// Reads a stored hash. Never panics.
    ///
    /// # Errors
    /// When the text is anything but one hash.
    fn from_str(text: &str) -> Result<Self, BadText> {
        let mut fields = text.strip_prefix('$').ok_or(BadText("does not begin with $"))?.splitn(3, '$');
        let mut field = || fields.next().ok_or(BadText("has too few fields"));
        let (flavor, cost, body) = (field()?, field()?, field()?);
        let flavor = Flavor::named(flavor).ok_or(BadText::FLAVOR)?;
        let (salt, tag) = body.split_at_checked(SALT_CHARS).ok_or(BadText::BODY)?;
        Hash::of_parts(flavor, two_digits(cost).ok_or(BadText::DIGITS)?, salt, tag)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}${:02}${}{}", self.flavor.name(), self.cost, self.salt_text(), self.tag_text())
    }
}

fn two_digits(digits: &str) -> Option<u32> {
    let &[tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = digits.as_bytes() else { return None };
    Some(u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
}

/// Any other number of characters decodes to another number of bytes.
fn decode<const N: usize>(chars: &str) -> Option<[u8; N]> {
    BASE64.decode(chars).ok()?.try_into().ok()
}

//! Identifiers. Each kind has a type of its own, so that a user's id cannot be passed where a client's belongs.

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

ids! {
    /// An issuer with its own people, clients, keys and settings. Every row belongs to one realm.
    RealmId,
    /// A person: the `sub` of OpenID Connect Core §2, random, never reassigned.
    UserId,
    /// An application: the `client_id` of RFC 6749 §2.2.
    ClientId,
    /// A sign-in at this provider: the `sid` of OpenID Connect Back-Channel Logout §2.1. Not a secret.
    SessionId,
    /// Everything that was issued from one approval: the refresh token's line of descent.
    FamilyId,
    /// A signing key's `kid` (RFC 7517 §4.5).
    Kid,
    /// A group of people, whose name appears in the `groups` claim.
    GroupId,
    /// A client's life: from when it is registered or enabled again until it is disabled or removed. What is issued to
    /// it belongs to one life, whatever the nodes' clocks say. The id says when the life began.
    LifeId,
}

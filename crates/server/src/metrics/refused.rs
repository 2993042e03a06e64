//! Why the server refused a request although the protocol did not require it.

app::labels! {
    /// Attached to a refusal, as an extension of the response, for the place where responses are counted.
    Refused {
        /// Too many requests wait: for a password's hash, or for a place at the door.
        Busy = "busy",
        /// A client, an address or all of them together exceeded their rate.
        Rate = "rate",
        /// Too many failures before.
        Throttled = "throttled",
        /// The database cannot be used.
        Database = "database",
        /// Other requests changed the same data at each attempt.
        Contended = "contended",
        /// Something of ours is broken.
        Fault = "fault",
        /// The body is too large.
        BodyTooLarge = "body_too_large",
        /// The body came too slowly.
        BodyTooSlow = "body_too_slow",
        /// The body broke off.
        BodyBroken = "body_broken",
        /// The body has another type than the door reads.
        MediaType = "media_type",
        /// A form that does not come from our page.
        ForeignForm = "foreign_form",
        /// A form that is too old, or of another browser.
        StaleForm = "stale_form",
        /// The request names another host.
        WrongHost = "wrong_host",
    }
}

impl Refused {
    /// Returns whether the client was told to come back before anything was done for it.
    pub fn puts_off(&self) -> bool {
        matches!(self, Refused::Busy | Refused::Rate)
    }
}

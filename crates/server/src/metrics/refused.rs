//! Why the server said no without the protocol asking for it.

app::labels! {
    /// Goes with the answer that says no, among its extensions, to where answers are counted.
    Refused {
        /// Too many wait: for a password's hash, or for a place at the door.
        Busy = "busy",
        /// A client, an address or everybody together asked more often than they may.
        Rate = "rate",
        /// Too many failures before.
        Throttled = "throttled",
        /// The database cannot be used.
        Database = "database",
        /// Others changed the same thing each time.
        Contended = "contended",
        /// Something of ours is broken.
        Fault = "fault",
        /// The body is too large.
        BodyTooLarge = "body_too_large",
        /// The body came too slowly.
        BodyTooSlow = "body_too_slow",
        /// The body broke off.
        BodyBroken = "body_broken",
        /// The body is of another type than the door reads.
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
    /// Whether it was told to come back, before anything was done for it.
    pub fn puts_off(&self) -> bool {
        matches!(self, Refused::Busy | Refused::Rate)
    }
}

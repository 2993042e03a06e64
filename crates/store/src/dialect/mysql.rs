//! What MySQL and MariaDB want said differently.

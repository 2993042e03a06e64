//! The engine for MySQL and MariaDB.

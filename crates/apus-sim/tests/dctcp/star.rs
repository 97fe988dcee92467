//! Hosts around one switch.

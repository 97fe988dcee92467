//! Recalled and lent leases: the table, and the way back to the server.

pub(super) mod loans;
pub(super) mod recall;
pub(super) mod table;

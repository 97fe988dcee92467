//! Conformance of the DCTCP baseline to its paper and the RFCs.
//!
//! [`repair`], [`growth`] and [`model`] connect two hosts by a [`wire`] with the losses, duplicates
//! and delays of the test. [`paper`], [`joining`], [`incast`] and [`spraying`] put many hosts into
//! the fabric and compare them with the statements of the DCTCP paper (Alizadeh et al., SIGCOMM
//! 2010).

mod growth;
mod incast;
mod joining;
mod model;
mod paper;
mod repair;
mod spraying;
mod star;
mod wire;

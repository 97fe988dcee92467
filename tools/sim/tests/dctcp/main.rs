//! Does the baseline do what its paper and the RFCs say?
//!
//! [`repair`], [`growth`] and [`model`] put two hosts on a [`wire`] that loses, duplicates and delays what the test
//! names; [`paper`], [`joining`], [`incast`] and [`spraying`] put many hosts into the fabric and hold them against what the
//! DCTCP paper (Alizadeh et al., SIGCOMM 2010) states.

mod growth;
mod incast;
mod joining;
mod model;
mod paper;
mod repair;
mod spraying;
mod star;
mod wire;

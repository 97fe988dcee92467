//! The names of the counters.

use crate::keys::Cluster;
use apus_observe::SEALING;

#[test]
fn every_counter_of_sealing_has_its_meaning() {
    let endpoint = Cluster::new(41).builder().client().unwrap();
    let all = endpoint.metrics().driver;
    let counted: Vec<_> =
        all.iter().map(|(name, _)| *name).filter(|it| it.starts_with("seal_")).collect();
    let known: Vec<_> = SEALING.iter().map(|meaning| meaning.name).collect();
    assert_eq!(counted, known);
}

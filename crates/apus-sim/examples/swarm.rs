//! Scratch.
use apus_sim::check::Swarm;
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let swarm = Swarm { seeds: a[0]..a[0] + a[1], jobs: 2.try_into().unwrap() };
    let t = std::time::Instant::now();
    let s = swarm.run(|seed, v| {
        if std::env::var("V").is_ok() { println!("{seed} {} {} {:?}", v.tally.packets, v.tally.rpcs, t.elapsed()); }
        if let Some(f) = &v.finding { println!("{f}"); }
    });
    println!("{} seeds {} violations {} packets {} rpcs {:?} {:?}", s.seeds, s.findings.len(), s.tally.packets, s.tally.rpcs, t.elapsed(), s.tally.faults);
    let mut kinds = std::collections::BTreeMap::new();
    for f in s.findings { kinds.entry(f.violation.kind).or_insert_with(Vec::new).push(f.seed); }
    println!("{kinds:?}");
}

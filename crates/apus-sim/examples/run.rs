//! Scratch.
use apus_sim::experiment::{Carrier, Pattern};
use apus_sim::fabric::Settings;
use apus_sim::host::Answer;
use apus_sim::{Experiment, preset};
use apus_workload::{PacketOverhead, Workload};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let workload: Workload = args[1].parse().unwrap();
    let load: f64 = args[2].parse().unwrap();
    let messages: u32 = args[3].parse().unwrap();
    let seed: u64 = args[4].parse().unwrap();
    let mut builder = preset::sigcomm18_config(&workload).unwrap().to_builder();
    for pair in &args[5..] {
        let (name, value) = pair.split_once('=').unwrap();
        builder = builder.set(name, value.parse().unwrap()).unwrap();
    }
    let config = builder.build().unwrap();
    let e = Experiment {
        fabric: Settings::new(preset::sigcomm18(), seed),
        carrier: if std::env::var("ORACLE").is_ok() {
            Carrier::Oracle
        } else {
            Carrier::Apus(config.clone())
        },
        reckoned_with: config,
        workload,
        load,
        pattern: Pattern::Uniform,
        answer: Answer::Nothing,
        packets: PacketOverhead::UDP_OVER_ETHERNET,
        messages,
        warm_up: std::env::var("WARM").map_or(messages / 5, |w| w.parse().unwrap()),
        greet: true,
        seed,
    };
    let t = std::time::Instant::now();
    let r = e.run(&mut |_| {});
    let wall = t.elapsed().as_secs_f64();
    for b in &r.slowdown.by_size {
        println!("{:6} {:9} {:7} {:.2} / {:.2}", b.percentile, b.upto, b.count, b.p50, b.p99);
    }
    println!(
        "small {:.3} mean_msg {:.3} mean_bytes {:.3} largest {:.2} growth {:.4} failed {}",
        r.slowdown.small_half_p99_max,
        r.slowdown.mean_by_messages,
        r.slowdown.mean_by_bytes,
        r.slowdown.largest_bin_p99,
        r.growth,
        r.failed
    );
    println!("{:?}", r.counters);
    println!(
        "packets {} wall {:.2} => {:.0}/s, simulated {:.4} s",
        r.packets,
        wall,
        r.packets as f64 / wall,
        r.simulated as f64 / 1e9
    );
}

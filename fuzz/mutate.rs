//! Fuzzing without a fuzzer: inputs that are drawn from stored ones, by mutation.
//!
//! The crates that have the body of a fuzz target include this file in their tests. The sequence of
//! inputs is the same in every run, so a failure repeats; `APUS_FUZZ_INPUTS` is the number of
//! inputs if more are wanted than a test has time for.

use std::path::Path;

/// Inputs of one test, unless `APUS_FUZZ_INPUTS` says otherwise.
const INPUTS: u64 = 50_000;

/// Bytes of an input. Source: the default of libFuzzer for a corpus of short inputs.
const MAX_LENGTH: usize = 4_096;

/// Passes inputs that are made from those in `fuzz/corpus/<target>` to `body`: each has 1 to 8
/// mutations. A panic is preceded by the input, in hexadecimal. A packaged crate has no corpus: the
/// mutations then begin with no bytes.
pub(crate) fn mutate(target: &str, body: impl Fn(&[u8]) + std::panic::RefUnwindSafe) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    paths.sort();
    let mut seeds: Vec<_> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    seeds.push(Vec::new());
    let wanted = std::env::var("APUS_FUZZ_INPUTS").ok().map(|text| text.parse().unwrap());
    let mut random = Random(7);
    for _ in 0..wanted.unwrap_or(INPUTS) {
        let mut input = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(8) {
            let other = &seeds[random.below(seeds.len())];
            change(&mut random, &mut input, other);
        }
        input.truncate(MAX_LENGTH);
        if let Err(panic) = std::panic::catch_unwind(|| body(&input)) {
            let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("input of {target}: {hex}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Changes an input in one place.
fn change(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(input.len() + 1);
    let end = (at + random.below(17)).min(input.len());
    match random.below(7) {
        0 => input.truncate(at),
        1 => drop(input.drain(at..end)),
        2 => {
            let copy = input[at..end].to_vec();
            input.splice(at..at, copy);
        }
        3 if !other.is_empty() => {
            let from = random.below(other.len());
            let part = &other[from..(from + 1 + random.below(64)).min(other.len())];
            input.splice(at..end, part.iter().copied());
        }
        4 => {
            let bytes: Vec<u8> = (0..random.below(9)).map(|_| random.below(256) as u8).collect();
            input.splice(at..at, bytes);
        }
        5 if at < input.len() => input[at] ^= 1 << random.below(8),
        // Bytes that are often special: an end of a varint, a limit, a separator.
        _ if at < input.len() => {
            input[at] = [0, 1, 2, 3, 0x7f, 0x80, 0xff, b'/', b'.'][random.below(9)];
        }
        _ => input.push(random.below(256) as u8),
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % end as u64) as usize
    }
}

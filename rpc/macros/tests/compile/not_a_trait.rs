#[apus_macros::service]
struct Store;

fn main() {}

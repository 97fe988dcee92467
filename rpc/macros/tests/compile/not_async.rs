#[apus_macros::service]
trait Store {
    fn get(&self, key: String) -> String;
}

fn main() {}

mod caches; fn main(){ let c = caches::candidates(None, 100, 64); println!("{}", c.len()); }

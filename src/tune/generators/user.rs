//! Work-groups that the user names, from (1,1,1) up.

use crate::error::{Error, Result};

/// The given sizes in the given order, repeats included.
///
/// # Errors
/// If a size has an extent of 0: the smallest work-group is (1,1,1).
pub fn list(sizes: &[[u32; 3]]) -> Result<Vec<[u32; 3]>> {
    match sizes.iter().find(|size| size.contains(&0)) {
        Some([x, y, z]) => {
            Err(Error::input("work-group list", format!("({x},{y},{z})"), "extents of at least 1"))
        }
        None => Ok(sizes.to_vec()),
    }
}

/// Every size from (1,1,1) to `last` whose extents double: 1, 2, 4, ... and the extent of `last`
/// itself. x is the outermost loop and z the innermost. A `last` with an extent of 0 has none.
///
/// This is the row of sizes of the PoseNet article, from (1,1,1) to the (8,4,8) of the table.
pub fn up_to(last: [u32; 3]) -> Vec<[u32; 3]> {
    let [xs, ys, zs] = last.map(|last| {
        let doubling = std::iter::successors(Some(1u32), |size| size.checked_mul(2));
        let mut sizes: Vec<u32> = doubling.take_while(|&size| size < last).collect();
        if last > 0 {
            sizes.push(last);
        }
        sizes
    });
    let (ys, zs) = (&ys, &zs);
    xs.into_iter().flat_map(|x| ys.iter().flat_map(move |&y| zs.iter().map(move |&z| [x, y, z]))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_taken_as_it_is_unless_a_size_is_empty() {
        let sizes = [[8, 4, 8], [1, 1, 1], [8, 4, 8]];
        assert_eq!(list(&sizes).expect("a valid list"), sizes);
        assert!(list(&[]).expect("an empty list").is_empty());
        let text = list(&[[1, 1, 1], [4, 0, 1]]).expect_err("an empty size").to_string();
        assert_eq!(text, "work-group list: found (4,0,1), wanted extents of at least 1");
    }

    #[test]
    fn sizes_double_from_one_and_end_with_the_last() {
        assert_eq!(up_to([2, 1, 3]), [[1, 1, 1], [1, 1, 2], [1, 1, 3], [2, 1, 1], [2, 1, 2], [2, 1, 3]]);
        // 1 2 4 8, 1 2 4, 1 2 4 8.
        let article = up_to([8, 4, 8]);
        assert_eq!(article.len(), 4 * 3 * 4);
        assert_eq!((article[0], article[47]), ([1, 1, 1], [8, 4, 8]));
        assert!(up_to([0, 4, 4]).is_empty());
        // 2^0 to 2^31 and the last.
        assert_eq!(up_to([u32::MAX, 1, 1]).len(), 33);
    }
}

// Headers of programs include cuBLAS's for what recipes leave out. pip's nvcc does not come with it.

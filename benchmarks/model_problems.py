"""What candidates are measured of for a model: defs of the examples, in sizes that users have.

Powers of two, ragged ones and primes; square, tall and flat. On one core of 2020 the default mostly
takes 20 µs to a millisecond, so that compiling takes most of the time; of some defs, the last sizes
take 2 to 40 ms, as a model declines problems that are larger than all it has learned from.
"""

from __future__ import annotations

PROBLEMS: dict[str, tuple[str, ...]] = {
    "matmul": (
        *("M=256,N=256,K=256", "M=64,N=512,K=128", "M=130,N=200,K=310", "M=384,N=192,K=128"),
        *("M=100,N=100,K=100", "M=512,N=512,K=64", "M=1,N=512,K=1024", "M=31,N=397,K=211"),
        *("M=8,N=1000,K=512", "M=1024,N=32,K=256", "M=64,N=64,K=2048", "M=20,N=20,K=300"),
        *("M=1024,N=1024,K=1024", "M=128,N=4096,K=1024"),
    ),
    "tmm": (
        *("M=128,N=256,K=512", "M=64,N=512,K=256", "M=31,N=400,K=333", "M=128,N=128,K=128"),
        *("M=16,N=1000,K=300", "M=200,N=64,K=1024"),
        *("M=128,N=2048,K=1024",),
    ),
    "matmul_double": ("M=128,N=256,K=200", "M=97,N=101,K=103"),
    "batch_matmul": (
        *("B=64,N=26,M=72,K=26", "B=30,N=40,M=48,K=64", "B=16,N=64,M=64,K=64"),
        *("B=100,N=8,M=32,K=100", "B=500,N=16,M=16,K=16"),
        *("B=64,N=128,M=128,K=128",),
    ),
    "c3": ("B=32,WX=250,WY=512", "B=128,WX=200,WY=100"),
    "mlp1": (
        *("B=64,M=500,N=128", "B=32,M=256,N=256", "B=128,M=1000,N=64", "B=10,M=784,N=100"),
        *("B=256,M=1000,N=1024",),
    ),
    "fcrelu": ("B=32,M=512,N=200", "B=128,M=256,N=250", "B=128,M=1024,N=1024"),
    "mlp3": ("B=128,N=128,O=64,P=32,Q=2", "B=100,N=300,O=100,P=50,Q=10"),
    "kronecker3_1": ("M=32,N0=16,N1=16,N2=32,D2=16", "M=64,N0=10,N1=10,N2=20,D2=8"),
    "kronecker3_2": ("M=32,N0=16,N1=32,D1=16,D2=16", "M=50,N0=10,N1=20,D1=10,D2=8"),
    "kronecker3": ("M=16,N0=16,N1=16,N2=16,D0=8,D1=8,D2=8",),
    "convolution": (
        *("N=2,C=16,F=16,H=28,W=28,KH=3,KW=3", "N=1,C=32,F=32,H=20,W=20,KH=3,KW=3"),
        *("N=4,C=8,F=8,H=30,W=30,KH=3,KW=3", "N=1,C=64,F=64,H=9,W=9,KH=3,KW=3"),
        *("N=1,C=3,F=16,H=64,W=64,KH=5,KW=5", "N=8,C=4,F=4,H=56,W=56,KH=3,KW=3"),
        *("N=8,C=64,F=64,H=30,W=30,KH=3,KW=3", "N=32,C=16,F=16,H=58,W=58,KH=3,KW=3"),
    ),
    "convolution_padded": ("N=1,C=16,F=16,H=28,W=28", "N=2,C=8,F=12,H=31,W=31"),
    "convolution_strided": (
        *("N=1,C=16,F=32,H=57,W=57,KH=3,KW=3", "N=2,C=8,F=16,H=33,W=41,KH=3,KW=3"),
        *("N=1,C=3,F=64,H=229,W=229,KH=7,KW=7",),
    ),
    "group_convolution": (
        *("N=2,G=16,C=8,F=8,H=28,W=28,KH=3,KW=3", "N=1,G=8,C=16,F=16,H=14,W=14,KH=3,KW=3"),
        *("N=4,G=8,C=4,F=4,H=28,W=28,KH=3,KW=3", "N=4,G=32,C=4,F=4,H=14,W=14,KH=3,KW=3"),
        *("N=1,G=32,C=32,F=32,H=7,W=7,KH=3,KW=3",),
        *("N=32,G=32,C=8,F=8,H=28,W=28,KH=3,KW=3",),
    ),
    "masked_convolution": ("B=1,C=32,H=28,W=28,F=32,K=1", "B=2,C=16,H=20,W=20,F=16,K=3"),
    "wavenet": (
        "B=1,RESIDUAL_C=16,RECEPTIVE_FIELD=500,DILATION_C=16,SKIP_C=64,DILATION=1",
        "B=1,RESIDUAL_C=8,RECEPTIVE_FIELD=1000,DILATION_C=8,SKIP_C=32,DILATION=16",
    ),
    "attention_scores": ("B=4,S=64,D=64", "B=8,S=50,D=32", "B=2,S=128,D=40", "B=16,S=512,D=64"),
    "softmax": (
        *("N=256,D=1024", "N=1024,D=200", "N=512,D=512", "N=100,D=2000", "N=37,D=997"),
        *("N=5000,D=10",),
        *("N=4096,D=2048",),
    ),
    "softmax_twice": ("N=200,D=512", "N=64,D=1000"),
    "log_softmax": ("N=128,D=1000", "N=300,D=256"),
    "layernorm": ("N=256,D=768", "N=128,D=1024", "N=500,D=300", "N=64,D=4096", "N=4096,D=1024"),
    "batchnorm": ("N=4,C=32,H=14,W=14", "N=8,C=16,H=10,W=10"),
    "group_normalization": ("N=2,G=16,D=8,H=12,W=12", "N=1,G=32,D=4,H=15,W=15"),
    "cosine_similarity": ("M=200,N=1024", "M=1000,N=100"),
    "moments": ("N=128,K=2304", "N=64,K=5000", "N=1000,K=100", "N=8,K=30000", "N=2048,K=4096"),
    "variance": ("N=128,K=1000", "N=500,K=500"),
    "row_sum": ("M=512,N=512", "M=1000,N=77", "M=16,N=20000", "M=4096,N=4096"),
    "column_sum": ("M=512,N=512", "M=77,N=3000", "M=5000,N=40", "M=4096,N=2048"),
    "row_and_column_sums": ("M=300,N=500", "M=512,N=256"),
    "total_sum": ("M=256,N=512", "M=4096,N=2048"),
    "bias_relu_scale": ("M=512,N=1024", "M=256,N=700", "M=1000,N=99", "M=2048,N=2048"),
    "gelu": ("B=128,M=512", "B=2048,M=1024"),
    "sigmoid": ("N=2,C=16,H=56,W=56",),
    "copy": ("M=500,N=700", "M=4096,N=2048"),
    "transpose": ("N=2,C=32,H=28,W=28", "N=4,C=64,H=14,W=14", "N=32,C=64,H=56,W=56"),
    "stencil": ("M=512,N=512", "M=300,N=700", "M=1000,N=130", "M=2048,N=2048"),
    "stencil_same": ("M=400,N=400",),
    "avgpool": ("B=2,C=16,H=56,W=56", "B=4,C=32,H=28,W=28", "B=32,C=64,H=56,W=56"),
    "maxpool": ("B=2,C=32,H=56,W=56",),
    "global_avgpool": ("B=8,C=128,H=14,W=14", "B=4,C=512,H=7,W=7"),
    "small_mobilenet": ("C1=16,H=20,W=20,KH1=3,KW1=3,C2=32",),
    "tensordot": ("N=2,C1=16,C2=16,C3=16,H=14,W=14",),
    "one_lut": (
        *("B=64,D=64,L1=50,E1=10000", "B=128,D=32,L1=20,E1=5000"),
        *("B=2048,D=64,L1=50,E1=100000",),
    ),
    "indexing": ("H=10000,W=64,L=2048",),
    "table_sums": ("M=16,N=4000",),
    "argmin": ("N=100000",),
    "row_facts": ("M=200,N=500",),
}
"""Def → sizes."""

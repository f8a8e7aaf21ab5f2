from benchmarks.gpu.command import main

main()
